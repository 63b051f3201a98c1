/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_DAYTONA_TLS_FIXTURE_H
#define TESTS_UNIT_DAYTONA_TLS_FIXTURE_H

/* The servers and proxies of daytona_tls.py. Its path is the program's first argument. */
struct tls_ports {
	int right, wrong, proxy, refusing, plain;
};
extern struct tls_ports tls_ports;

void tls_begin(const char *script);
void tls_end(void);

const char *tls_authority(void); // the file of the authority's certificate

/* The requests that the servers ("requests.log") or the proxies ("proxy.log") got. */
const char *tls_log(const char *name);
void tls_forget(void); // both logs

#endif
