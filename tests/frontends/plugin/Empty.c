/* A library that is no plugin. */
int tcc_test_nothing;
