/* Two libraries: one that needs the other (WEIR_TEST_NEEDS), as the libraries in a wheel of Python do. */
int weir_test_half(void);

#ifdef WEIR_TEST_NEEDS
int weir_test_answer(void);

int weir_test_answer(void)
{
    return 2 * weir_test_half();
}
#else
int weir_test_half(void)
{
    return 21;
}
#endif
