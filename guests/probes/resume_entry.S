/* Where the SBI resumes a hart: a0 = hart id, a1 = its struct resumption (resume.c). Keeps what it found, then goes on as a hart that is started. */
.global resume_entry
resume_entry:
    csrr t0, satp
    csrr t1, sstatus
    csrr t2, sie
    csrr t3, sip
    csrr t4, time
    sd t0, 24(a1)
    sd t1, 32(a1)
    sd t2, 40(a1)
    sd t3, 48(a1)
    sd t4, 56(a1)
    sd a0, 64(a1)
    j secondary_start
