#include "counted.h"

FUNCTION static int third(int size)
{
	CALLED("third");
	return size / 3;
}

int measure(int size)
{
	CALLED("measure");
	return size % 4 ? third(size) : size;
}
