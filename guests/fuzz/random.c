#include "random.h"
#include "irqchip_registers.h"
#include "machine.h"
#include "memory.h"

/* splitmix64 */
uint64_t any(struct vcpu *v)
{
    uint64_t z = v->random += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint64_t edge_number(struct vcpu *v)
{
    uint64_t r = any(v);
    switch (r & 7) {
    case 0:
        return r >> 3 & 3;
    case 1:
        return ~(r >> 3 & 3);
    case 2:
        return (1ul << (r >> 3 & 63)) - (r >> 9 & 1);
    case 3:
        return r >> 3 & 63;
    case 4:
        return (uint64_t)(int32_t)(r >> 3);
    case 5:
        return vcpu_count + (r >> 3 & 3) - 1;
    default:
        return any(v) >> (r >> 3 & 63);
    }
}

uint64_t edge_address(struct vcpu *v)
{
    uint64_t r = any(v), near = (r >> 8 & 31) - 16;
    switch (r & 15) {
    case 0:
        return machine.memory_base + near;
    case 1:
        return machine.memory_base + machine.memory_size + near;
    case 2:
        return irqchips[(r >> 4 & 15) % irqchip_count].base + (r >> 13) % (irqchips[(r >> 4 & 15) % irqchip_count].size + 0x1000);
    case 3:
        return UART_BASE + (r >> 13 & 0x1ff);
    case 4:
        return 0x10001000 + (r >> 13 & 0xffff); /* virtio slots of QEMU's virt */
    case 5:
        return 0x00100000 + (r >> 13 & 0xfff); /* its power switch and clock */
    case 6:
        return 0x80200000 + (r >> 13 & 0xffff8); /* where the hypervisor is on the board */
    case 7:
        return (1ul << (32 + (r >> 13 & 31))) + near;
    case 8:
    case 9:
    case 10:
    case 11:
        return scratch_address(v) + near;
    case 12:
        return edge_number(v);
    case 13:
        return machine.memory_base + (r >> 13) % machine.memory_size;
    default:
        return any(v);
    }
}
