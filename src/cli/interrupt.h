// Ctrl-C: the first asks the running request to stop within its block, the second ends the process.
#pragma once

namespace plateau::cli {

void install_interrupt_handler();
bool interrupted();

}  // namespace plateau::cli
