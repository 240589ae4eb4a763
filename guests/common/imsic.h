/* Registers of a hart's interrupt file by their numbers in siselect (AIA 1.0, section 3.8). Of the arrays a 64-bit hart has the even ones, with 64 identities
 * each. */
#pragma once
#include <stdint.h>

#define IMSIC_EIDELIVERY    0x70ul
#define IMSIC_EITHRESHOLD   0x72ul
#define IMSIC_EIP(identity) (0x80ul + (identity) / 64 * 2)
#define IMSIC_EIE(identity) (0xc0ul + (identity) / 64 * 2)

/* Bytes of the page that a file is (section 3.5), if a hart has no guests. */
#define IMSIC_FILE_SIZE 4096ul

/* Where messages are stored for the hart with this cpu-intc: each is an identity's number. NULL if it has no interrupt file. */
volatile uint32_t *imsic_file(uint32_t cpu_intc);

/* Has messages of this identity interrupt the hart that calls it. Ends the guest with a message if its file hasn't got it. */
void imsic_enable(uint32_t identity);

/* The identity that is to be served, which is claimed by that; 0: there is nothing to do. */
uint32_t imsic_claim(void);
