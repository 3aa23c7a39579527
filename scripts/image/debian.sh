# What scripts/guest and scripts/make-image share: file systems and kernels out of Debian packages, and what starts before them. Sourced;
# the caller defines `unavailable`, which says why something cannot be had here and ends the script.

need_tools() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || unavailable "there is no program '$tool' (scripts/install-deps --guest installs it)"
    done
}

debian_suite() { # shellcheck disable=SC1091
    (. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")
}

# The package of Debian's present kernel.
kernel_package() {
    local kernel
    kernel=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '$1 == "Depends:" { print $2; exit }')
    [[ $kernel == linux-image-* ]] || unavailable "apt knows no linux-image-amd64 (an apt-get update is needed?)"
    echo "$kernel"
}

# unpack_kernel_package PACKAGE FOLDER: FOLDER/boot and FOLDER/lib/modules. Unpacked, not installed: installing makes an initrd of its own.
unpack_kernel_package() {
    (mkdir -p "$2/download" && cd "$2/download" && apt-get download -q "$1") && dpkg-deb -x "$2/download/$1"_*.deb "$2" && rm -r "$2/download"
}

# debian_root OUT.tar SUITE "PACKAGE..." MMDEBSTRAP-OPTION...: a file system without man pages, translations and documents, but with the
# licences, which must go with the programs.
debian_root() {
    local out=$1 suite=$2 wanted=$3
    shift 3
    mmdebstrap --include="${wanted// /,}" --components=main --aptopt='APT::Install-Recommends "false"' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-include=/usr/share/doc/*/copyright' "$@" --format=tar "$suite" "$out"
}

# copy_modules ROOT VERSION TREE MODULE...: these and those that they need, with their paths below TREE, in an order in which they load.
copy_modules() {
    local root=$1 version=$2 tree=$3 module path
    shift 3
    for module in "$@"; do
        modprobe -d "$root" -S "$version" --show-depends "$module" | awk '$1 == "insmod" { print $2 }'
    done | awk '!seen[$0]++' | while read -r path; do
        path=lib/modules/${path#*/lib/modules/}
        install -D -m 644 "$root/$path" "$tree/$path"
        echo "/$path"
    done
}

# The kernel without the part that unpacks it: QEMU starts that several seconds sooner.
unpack_kernel() {
    python3 - "$1" "$2" <<'PYTHON'
import lzma, sys
data = open(sys.argv[1], "rb").read()
start = data.find(b"\xfd7zXZ\x00")
if start < 0:
    sys.exit(f"{sys.argv[1]}: no xz stream in it")
open(sys.argv[2], "wb").write(lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(data[start:]))
PYTHON
}

# pack_initrd TREE: on standard output
pack_initrd() {
    (cd "$1" && find . | LC_ALL=C sort | cpio -o -H newc --quiet)
}
