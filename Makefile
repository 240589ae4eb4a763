# The commands: `make run`, `make demo` and `make test`. All install, fetch and build what is missing.
# What they do is in the scripts that are called here.

SYSTEM ?= systems/demo.toml
MINUTES ?= 60

.PHONY: help run demo test soak setup guests build clean

help:
	@echo "make run [SYSTEM=systems/x.toml]  boot a system on QEMU (default: $(SYSTEM))"
	@echo "make demo                         lock-holder preemption and its cure, side by side: nine runs, a table"
	@echo "make test [STEPS=\"...\"]           check formatting and lints, run all tests (see tools/test)"
	@echo "make soak [MINUTES=60]            random systems and other long tests (see tools/soak)"
	@echo "make setup                        install what is missing on Debian 12 or 13 (root or sudo)"
	@echo "make guests                       fetch Linux, build FreeRTOS, the probes and the fuzzing guest"
	@echo "make build                        build the hypervisor, the clocks for QEMU and the command-line tool"
	@echo "make clean                        remove what was built (what was fetched stays)"
	@echo "./ainori --help                   the command-line tool"

run: guests build
	tools/build-for $(SYSTEM)
	./ainori run $(SYSTEM)

# Three schedules can leave its bar undecided (3): that is an answer too, and the table is what the demo is for.
demo: guests build
	./ainori bench demo --check || { [ $$? -eq 3 ] && \
	echo "The three schedules leave its bar undecided: it holds in some of them. The experiment lhp has more."; }

test:
	@tools/setup --tests
	tools/test $(STEPS)

soak: guests build
	tools/soak --minutes $(MINUTES)

setup:
	@tools/setup

guests: setup
	guests/linux/build tests
	guests/freertos/build
	guests/probes/build
	guests/fuzz/build
	guests/differ/build

build: setup
	tools/build-kernel
	tools/qemu-plugins/build
	tools/build-cli

clean:
	rm -rf target .cache/kernel .cache/plugins .cache/guests .cache/test
