/* Ends at once: what `micro` has its children execute. */
int main(void)
{
	return 0;
}
