/* What the firmware keeps of the kernel at a trap. */
#pragma once

#define FIRMWARE_X(n)  ((n) * 8)
#define FIRMWARE_BYTES (32 * 8)
