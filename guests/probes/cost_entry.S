/* The trap entry of the probe `cost`: notes the count of instructions before anything else is done. */

.section .text.cost_entry, "ax"
.balign 4
.global cost_entry
cost_entry:
    csrw sscratch, t0               /* nobody else uses sscratch here */
    csrr t0, instret
    sd t0, (tp)                     /* tp: the variable for it */
    csrr t0, sscratch
    j trap_entry
