#include "counted.h"
#include "shapes.h"

FUNCTION static int one_round(int round)
{
	CALLED("one_round");
	return round % 5 ? area(round) : edges(round);
}

int main(void)
{
	CALLED("main");
	int sum = 0;
	for (int round = 0; round < 500; round++)
		sum += one_round(round);
	return sum == 0;
}
