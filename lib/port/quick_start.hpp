// EAL's start for a program that has memory and rings of DPDK and no device. A short replay would spend most of its
// time in what EAL does besides: it loads every driver that is installed, and where the CPU does not tell the frequency
// of its time stamp counter (AMD's, and most virtual machines) it sleeps for a tenth of a second to measure it.
#pragma once

namespace weir::port {

/// While one lives, for the calling thread: EAL finds no folder of drivers, and its sleep is a hundredth of a second.
/// It divides by the time that has passed by its clock and rounds to 10 MHz, which that is enough for; nothing in a
/// replay measures by it. EAL has no option for either, so this stands in for the two functions of the C library that
/// it calls; other threads and other calls are served as always.
class QuickStart {
public:
    QuickStart() noexcept;
    ~QuickStart();
    QuickStart(const QuickStart&) = delete;
    QuickStart& operator=(const QuickStart&) = delete;

    /// Loads the drivers that are needed all the same: those of port::BufferPool's pools. False where they are not to
    /// be had by themselves; then EAL has to be left to its ways.
    [[nodiscard]] static bool load_pool_drivers();
};

}  // namespace weir::port
