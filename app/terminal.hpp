// Text for people fits the terminal: its width where there is one, 80 columns elsewhere.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <cstddef>
#include <string>
#include <string_view>

namespace weir::app {

constexpr std::size_t usual_columns = 80;

/// Of the terminal that this descriptor is, at least 40; 80 if it is none.
[[nodiscard]] std::size_t columns_of(int descriptor);

/// Breaks lines that are longer than `columns` between words. What follows is indented as the line was, and by `hang`
/// more. A word that is longer alone stays whole.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t columns, std::size_t hang = 2);

/// Lays out help text: paragraphs are filled, the second column of a list stays one, and a command that has to be
/// broken gets a backslash. Text that fits is left as it is.
[[nodiscard]] std::string laid_out(std::string_view text, std::size_t columns);

/// A description of options as wide as the terminal that standard output is.
[[nodiscard]] boost::program_options::options_description options_for_terminal(const std::string& caption);

/// `--help`: what comes before the options, the options, and what comes after them, to standard output.
void print_help(std::string_view intro, const boost::program_options::options_description& options,
                std::string_view after = {});

}  // namespace weir::app
