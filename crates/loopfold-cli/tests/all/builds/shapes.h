#ifdef __cplusplus
extern "C" {
#endif
int area(int size);
int edges(int size);
#ifdef __cplusplus
}
#endif
