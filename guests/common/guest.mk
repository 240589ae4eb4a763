# What every bare-metal guest shares: tools, flags, start code. A guest's Makefile sets
#   OUT    folder for its ELF files and objects
# and includes this file. Paths are absolute, so a Makefile may be called from anywhere.

COMMON := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
TOP    := $(abspath $(COMMON)/../..)
CROSS  ?= riscv64-unknown-elf-
CC     := $(CROSS)gcc

ifeq ($(shell command -v $(CC)),)
$(error $(CC) is not there: apt-get install gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf)
endif

# -misa-spec=2.2: the base set includes the CSR and fence.i instructions, so that gcc 12 finds its rv64gc libraries.
# Names of files (`__FILE__`, and where code is from) are relative to the checkout, wherever that is: the same sources are the same bytes.
# The C code does no floating point; lp64d is the ABI of those libraries.
CFLAGS  := -march=rv64gc -misa-spec=2.2 -mabi=lp64d -mcmodel=medany --specs=picolibc.specs -std=gnu11 -ffreestanding \
           -O2 -g -Wall -Wextra -Wmissing-prototypes -Werror -ffunction-sections -fdata-sections -fno-pic -I$(COMMON) \
           -ffile-prefix-map=$(TOP)/= -Wa,--debug-prefix-map=$(TOP)/=
LDFLAGS := -nostartfiles -static -T$(COMMON)/link.ld -Wl,--gc-sections -Wl,--build-id=none

COMMON_OBJECTS := $(addprefix $(OUT)/obj/common/,entry.o start.o trap_entry.o trap.o console.o fdt.o machine.o args.o histogram.o timer.o irqchip.o irqchip_registers.o plic.o aplic.o imsic.o device.o channel.o)

.SUFFIXES:
.SECONDARY:

# Objects are built again when this file changes too: the flags are here.
RULES := $(COMMON)/guest.mk

$(OUT)/obj/common/%.o: $(COMMON)/%.c $(RULES)
	@mkdir -p $(@D)
	@$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/obj/common/%.o: $(COMMON)/%.S $(RULES)
	@mkdir -p $(@D)
	@$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

# $(call link,OBJECTS): links the target and says so in one line.
define link
@mkdir -p $(@D)
@$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(1)
@echo "  built $(notdir $@)"
endef

# Position-independent programs, for memory that begins elsewhere. GNU's linker makes no such files for bare metal, and LLVM's doesn't relax.
PIE_CFLAGS         := $(filter-out -fno-pic,$(CFLAGS)) -fpie -mno-relax
PIE_LDFLAGS         = -fuse-ld=lld -B$(dir $(shell command -v ld.lld)) -Wl,-pie,--no-dynamic-linker
PIE_COMMON_OBJECTS := $(COMMON_OBJECTS:$(OUT)/obj/%=$(OUT)/obj/pie/%)

# The same layout from 0 on, and a segment that tells where the tables are of what is to be relocated.
$(OUT)/obj/pie/link.ld: $(COMMON)/link.ld $(RULES)
	@mkdir -p $(@D)
	@sed -e 's/\. = 0x80400000;/. = 0;/' -e 's/^    data PT_LOAD.*/&\n    dynamic PT_DYNAMIC;/' \
	    -e 's/^    \.data :.*/    .dynamic : { *(.dynamic) } :data :dynamic\n    .got : { *(.got) } :data\n&/' $< >$@

$(OUT)/obj/pie/common/%.o: $(COMMON)/%.c $(RULES)
	@mkdir -p $(@D)
	@$(CC) $(PIE_CFLAGS) -MMD -MP -c -o $@ $<

$(OUT)/obj/pie/common/%.o: $(COMMON)/%.S $(RULES)
	@mkdir -p $(@D)
	@$(CC) $(PIE_CFLAGS) -MMD -MP -c -o $@ $<

# $(call link_pie,OBJECTS,KIND): links the target with such a kind of compact tables, `relr` or `none`. It has to depend on link.ld above.
define link_pie
@$(CC) $(PIE_CFLAGS) $(LDFLAGS:-T%=-T$(OUT)/obj/pie/link.ld) $(PIE_LDFLAGS) -Wl,--pack-dyn-relocs=$(2) -o $@ $(1)
@echo "  built $(notdir $@)"
endef
