/* A plugin's library that exports one symbol more than it should; it is never loaded. */
int netcl_plugin_open_v1(void) { return 0; }
int a_name_that_others_may_have(void) { return 1; }
