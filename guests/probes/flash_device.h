/* A parallel flash chip that speaks CFI (JEDEC JESD68.01). */
#pragma once
#include <stdbool.h>

/* Puts the first chip of the tree into query mode and back: true if it answered "QRY". Ends the guest with a message if there is none. */
bool flash_answers(void);
