/* Runs a script, as the command `lua` does, whose own source is not bundled with the library: the
 * first argument is the script, the second the number that it finds in the variable `size`. */
#include "lauxlib.h"
#include "lualib.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    lua_State *state = luaL_newstate();
    luaL_openlibs(state);
    lua_pushinteger(state, argc > 2 ? atoi(argv[2]) : 1);
    lua_setglobal(state, "size");
    if (argc < 2 || luaL_dofile(state, argv[1])) {
        fprintf(stderr, "%s\n", lua_tostring(state, -1));
        return 1;
    }
    lua_close(state);
    return 0;
}
