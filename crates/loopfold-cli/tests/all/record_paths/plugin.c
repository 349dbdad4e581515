#include "emit.h"

void plugin(void)
{
    enter(2);
    path(3);
    leave();
}
