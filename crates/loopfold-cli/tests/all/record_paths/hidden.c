/* A library whose version script exports these functions and hides its run-time library. */
#include "emit.h"

void call_back(void (*function)(void))
{
    enter(2);
    path(3);
    function();
    path(4);
    leave();
}

void only_work(void)
{
    enter(1);
    path(0);
    leave();
}

/* The exit is emitted with the last path, as instrumented code has it. */
void leave_with_path(void)
{
    enter(1);
    loopfold_rt_depth--;
    emit(2);
    emit(0xffffffffu);
}
