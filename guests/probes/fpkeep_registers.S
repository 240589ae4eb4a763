/* Fills and reads the floating-point and vector registers, as raw bits. */

.option arch, +v

.section .text, "ax"

.macro FP_LOAD name, load /* void NAME(const uint64_t f[32], uint64_t fcsr) */
.global \name
\name:
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    \load f\n, (\n * 8)(a0)
    .endr
    fscsr a1
    ret
.endm

.macro FP_STORE name, store /* uint64_t NAME(uint64_t f[32]): returns fcsr */
.global \name
\name:
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    \store f\n, (\n * 8)(a0)
    .endr
    frcsr a0
    ret
.endm

FP_LOAD  fp_load, fld
FP_STORE fp_store, fsd
/* For harts whose registers have 32 bits. */
FP_LOAD  fp_load_single, flw
FP_STORE fp_store_single, fsw

/* void vector_load(const uint8_t *v, uint64_t elements, uint64_t vcsr): all 32 registers, then vl, vtype and vcsr */
.global vector_load
vector_load:
    csrw vstart, zero # else a load would begin in the middle
    csrr t0, vlenb
    slli t0, t0, 3
    vl8r.v v0, (a0)
    add a0, a0, t0
    vl8r.v v8, (a0)
    add a0, a0, t0
    vl8r.v v16, (a0)
    add a0, a0, t0
    vl8r.v v24, (a0)
    vsetvli zero, a1, e16, m2, tu, mu
    csrw vcsr, a2
    ret

/* void vector_store(uint8_t *v, struct vector_state *state): whole-register stores don't depend on vl and vtype */
.global vector_store
vector_store:
    csrr t0, vl
    sd t0, 0(a1)
    csrr t0, vtype
    sd t0, 8(a1)
    csrr t0, vcsr
    sd t0, 16(a1)
    csrr t0, vlenb
    slli t0, t0, 3
    vs8r.v v0, (a0)
    add a0, a0, t0
    vs8r.v v8, (a0)
    add a0, a0, t0
    vs8r.v v16, (a0)
    add a0, a0, t0
    vs8r.v v24, (a0)
    ret

/* uint64_t vector_bytes(void): length of one register */
.global vector_bytes
vector_bytes:
    csrr a0, vlenb
    ret
