/* `in-window PROGRAM [ARGUMENT]...`: executes a program that has no windows of its own as one, of number 6. */
#include "../micro/libc.h"

enum { WINDOW_PROGRAM = 6 };

int main(int count, char **words)
{
	if (count < 2)
		fail("the command line, in-window PROGRAM [ARGUMENT]...:");
	BEGIN_WINDOW(WINDOW_PROGRAM);
	pid_t child = fork();
	if (!child) {
		execv(words[1], words + 1);
		_exit(1);
	}
	wait_for(child);
	END_WINDOW(WINDOW_PROGRAM);
	return 0;
}
