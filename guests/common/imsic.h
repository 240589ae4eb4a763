/* Registers of a hart's interrupt file by their numbers in siselect (AIA 1.0, section 3.8). Of the arrays a 64-bit hart has the even ones, with 64 identities
 * each. */
#pragma once

#define IMSIC_EIDELIVERY    0x70ul
#define IMSIC_EITHRESHOLD   0x72ul
#define IMSIC_EIP(identity) (0x80ul + (identity) / 64 * 2)
#define IMSIC_EIE(identity) (0xc0ul + (identity) / 64 * 2)
