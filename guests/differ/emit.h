/* Writes a program, group by group. A group is instructions that only make sense together; nothing jumps into its middle. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum {
    /* What traps in its middle in S-mode goes on behind it. */
    WHOLE = 1,
    /* What traps in its middle goes on behind it in U-mode, too. */
    WHOLE_FOR_USER = 8,
    /* If it is left early, address translations are fenced. */
    FENCES = 2,
    /* If it is left early, instructions are. */
    FENCES_CODE = 4,
};

/* Begins a program, with these random numbers. */
void emit_begin(uint64_t *random);

/* May it have a vectored stvec? Else it may have misaligned atomic accesses: where OpenSBI (1.5) sees to both, it gives a kernel an odd program counter. */
bool program_is_vectored(void);

/* May it run without translation? */
bool program_goes_bare(void);

/* Is there room for one more group? */
bool emit_has_room(void);

/* Bytes of the program so far. */
unsigned emit_at(void);

void group_begin(unsigned flags);
void group_end(void);

void emit16(uint16_t instruction);
void emit32(uint32_t instruction);

/* A branch to one of the next groups: the instruction without its offset. `is_jump`: a JAL. */
void emit_forward(uint32_t instruction, bool is_jump);

/* The program ends here. */
void emit_finish(void);

/* `bits` to a register, which isn't 0; in as many instructions as that takes. */
void emit_constant(unsigned rd, uint64_t bits);
/* The same with a number below 2^44, in so many bytes. */
#define ADDRESS_BYTES 28
void emit_address(unsigned rd, uint64_t address);

/* I-type, R-type and S-type, of 32 bits. */
void emit_i(unsigned opcode, unsigned funct3, unsigned rd, unsigned rs1, int32_t immediate);
void emit_r(unsigned opcode, unsigned funct3, unsigned funct7, unsigned rd, unsigned rs1, unsigned rs2);
void emit_s(unsigned opcode, unsigned funct3, unsigned rs1, unsigned rs2, int32_t immediate);

enum { CSRRW = 1, CSRRS, CSRRC, CSRRWI = 5, CSRRSI, CSRRCI };
void emit_csr(unsigned function, unsigned rd, unsigned number, unsigned source);

/* Random numbers; a register that may be written (which ra and tp may not), 0 among them or not; any register. */
uint64_t random_bits(void);
uint64_t random_below(uint64_t limit);
bool random_one_in(uint64_t of);
unsigned random_rd(void);
unsigned random_target(void);
unsigned random_rs(void);

/* For who carries a program out: of the instruction at this byte, the end of its group if that is WHOLE, else 0; and the group's flags. */
unsigned whole_group_end(unsigned at);
unsigned group_flags(unsigned at);
