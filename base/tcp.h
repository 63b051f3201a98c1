/* SPDX-License-Identifier: MIT */
#ifndef BASE_TCP_H
#define BASE_TCP_H

/* Settings of a TCP socket through which bytes are passed on. */

/* From now on the kernel notices a peer that is gone, and sends small pieces at once. */
void tcp_keep_alive(int fd);

/* Makes close(2) of this socket reset the connection, so that its peer sees an error. */
void tcp_make_abrupt(int fd);

#endif
