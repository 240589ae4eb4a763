/* What is in memory when U-Boot starts: files, as they are. link.ld says where. */
	.macro file section, name
	.section \section, "awx", @progbits
	.incbin "\name"
	.endm

	file .u_boot, "u-boot.bin"
	file .image, "Image"
	file .environment, "environment"
	file .initramfs, "initramfs.cpio.gz"
