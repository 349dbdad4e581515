#include "counted.h"
#include "shapes.h"

FUNCTION int half(int number)
{
	CALLED("half");
	return number / 2;
}

FUNCTION int area(int size)
{
	CALLED("area");
	return size % 3 ? half(size * size) : size;
}

FUNCTION int edges(int size)
{
	CALLED("edges");
	int sum = 0;
	for (int edge = 0; edge < 4; edge++)
		sum += half(size + edge);
	return sum;
}
