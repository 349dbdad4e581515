#include "counted.h"
#include "shapes.h"

namespace plane {

struct Odd {
	int size;
};

FUNCTION int checked(int size)
{
	CALLED("plane::checked(int)");
	if (size % 2)
		throw Odd{size};
	return area(size);
}

struct Shape {
	int size;
	FUNCTION explicit Shape(int size) : size(size)
	{
		CALLED("plane::Shape::Shape(int)");
	}
	FUNCTION virtual int measure()
	{
		CALLED("plane::Shape::measure()");
		return checked(size);
	}
};

} // namespace plane

int main()
{
	CALLED("main");
	int sum = 0;
	for (int size = 0; size < 300; size++) {
		plane::Shape shape(size);
		plane::Shape *volatile some = &shape;
		try {
			sum += some->measure();
		} catch (plane::Odd &odd) {
			sum += edges(odd.size);
		}
	}
	return sum == 0;
}
