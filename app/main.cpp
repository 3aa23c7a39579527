// The program `weir`.
#include "process.hpp"
#include "program.hpp"

int main(int argc, char** argv) {
    weir::app::open_standard_descriptors();
    weir::app::let_writes_fail();
    return weir::app::run_program({argv + (argc > 0 ? 1 : 0), argv + argc});
}
