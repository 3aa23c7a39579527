#!/usr/bin/env python3
"""GRUB for BIOS into a disk image: the boot sector, and its core in the partition for it.

What grub-bios-setup does to a disk that it can ask the kernel about. Offsets are those of GRUB's boot.S and diskboot.S.
usage: embed_grub.py IMAGE BOOT.IMG CORE.IMG FIRST-SECTOR SECTORS
"""

import struct
import sys

SECTOR = 512
KERNEL_SECTOR = 0x5C  # in boot.img: where the core begins
BOOT_CODE = 440  # what follows is the partition table's
BLOCK_LIST = SECTOR - 12  # in the core's first sector: where its other sectors are


def main():
    image, boot, core = sys.argv[1:4]
    first, room = map(int, sys.argv[4:])
    with open(boot, "rb") as file:
        boot = bytearray(file.read())
    with open(core, "rb") as file:
        core = bytearray(file.read())
    sectors = -(-len(core) // SECTOR)
    if sectors > room:
        sys.exit(f"embed_grub.py: the core of GRUB has {sectors} sectors, the partition {room}")
    struct.pack_into("<Q", boot, KERNEL_SECTOR, first)
    struct.pack_into("<QH", core, BLOCK_LIST, first + 1, sectors - 1)
    with open(image, "r+b") as disk:
        disk.write(boot[:BOOT_CODE])
        disk.seek(first * SECTOR)
        disk.write(core)


main()
