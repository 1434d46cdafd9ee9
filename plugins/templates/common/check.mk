# make check, make install, make clean: included by Makefile, which sets PLUGIN.

# The program: found in PATH, or `make NETCL_APP=/path/to/netcl-app`.
NETCL_APP ?= netcl-app
# The device to check on; `netcl-app devices` lists them.
DEVICE ?= cpu:0
# netcl-app looks for plugins here, among other places.
INSTALL_DIR ?= $(or $(XDG_DATA_HOME),$(HOME)/.local/share)/netcl/plugins

check: all netcl-app
	NETCL_APP="$(NETCL_APP)" DEVICE="$(DEVICE)" sh check.sh build

install: all
	mkdir -p "$(INSTALL_DIR)"
	cp -r "$(PLUGIN)" "$(INSTALL_DIR)/"

clean:
	rm -rf build

netcl-app:
	@command -v "$(NETCL_APP)" > /dev/null || { \
	  echo 'netcl-app was not found ("$(NETCL_APP)"): add its folder to PATH,'; \
	  echo 'or name it: make NETCL_APP=/path/to/netcl-app'; exit 1; }

.PHONY: all check install clean netcl-app
