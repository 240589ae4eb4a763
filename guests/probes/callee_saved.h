/* A load or store of each register that a C function keeps, and of those of the program, from the address in t0. For assembly. */
.macro FOR_CALLEE_SAVED op
    \op ra, 0(t0)
    \op sp, 8(t0)
    \op gp, 16(t0)
    \op tp, 24(t0)
    \op s0, 32(t0)
    \op s1, 40(t0)
    \op s2, 48(t0)
    \op s3, 56(t0)
    \op s4, 64(t0)
    \op s5, 72(t0)
    \op s6, 80(t0)
    \op s7, 88(t0)
    \op s8, 96(t0)
    \op s9, 104(t0)
    \op s10, 112(t0)
    \op s11, 120(t0)
.endm
