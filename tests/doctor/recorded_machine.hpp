// Machines as trees of small files below a folder, as their kernels have them: one that is set up well, one that is set
// up badly, one that says nothing. What only a live system says is filled in by hand.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "doctor/check.hpp"
#include "doctor/examine.hpp"
#include "temporary_directory.hpp"

namespace weir::doctor::test {

class RecordedMachine {
public:
    void write(const std::string& path, const std::string& text) const;
    void link(const std::string& path, const std::string& target) const;
    void remove(const std::string& path) const;
    [[nodiscard]] std::string read(const std::string& path) const;
    [[nodiscard]] const std::filesystem::path& root() const { return root_.path(); }

    /// Two sockets of four cores with two threads each: CPUs 0-3 and their siblings 8-11 on node 0, 4-7 and 12-15 on
    /// node 1.
    void write_cpus(const std::string& isolated, const std::string& governor) const;
    struct Pci {
        std::string address;
        std::string bridge;
        std::string driver;
        std::string interface {};
        int node = 0;
        std::string speed = "16.0 GT/s PCIe";
        std::string width = "16";
        bool iommu = true;
        unsigned control = 0x2036;  ///< of PCI Express: MPS 256, MRRS 512
    };
    void write_pci(const Pci& device) const;
    void write_interface(const std::string& name, const std::string& mtu, const std::string& carrier = "1") const;
    void write_task(unsigned id, const std::string& name, const std::string& cpus, bool kernel = false) const;

private:
    weir::test::TemporaryDirectory root_;
};

/// Cards of both kinds on a machine that is set up as the guides say, for `good_config`.
void write_good_xeon(const RecordedMachine& machine);
/// The same machine as it comes out of the box, with everything wrong that can be.
void write_bad_xeon(const RecordedMachine& machine);
/// A virtual machine: one node, virtio-net on vfio-pci, no frequency and no idle states to be seen.
void write_epyc_guest(const RecordedMachine& machine);

/// A card and a kernel interface, JUNGFRAU on both, lcores on the card's node.
[[nodiscard]] config::RunConfig good_config();
/// The same with lcores on the wrong node and on siblings, too little memory, and frames that are cut.
[[nodiscard]] config::RunConfig bad_config();

/// What a live system would say besides.
void add_good_live_facts(HostFacts& host);
void add_bad_live_facts(HostFacts& host);

/// Everything that the checks say of a machine: the plan, the facts, and what is found.
struct Judged {
    HostFacts host;
    std::vector<Finding> findings;

    [[nodiscard]] std::vector<Finding> of(std::string_view check) const;
    /// The one finding of the check; fails the test if there is not exactly one.
    [[nodiscard]] Finding only(std::string_view check) const;
};
[[nodiscard]] Judged judged(const RecordedMachine& machine, const config::RunConfig* config, const Load& load,
                            void (*live)(HostFacts&) = nullptr);

}  // namespace weir::doctor::test
