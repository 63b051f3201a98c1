/* SPDX-License-Identifier: MIT */
#include "providers/local/net/nft.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/fd.h"

enum { REQUEST_MAX = 2048, CHAIN_PRIORITY = -100 /* where NAT of destinations is */ };

/* From linux/netfilter.h, which conflicts with musl's netinet/in.h. */
enum { FAMILY_IPV4 = 2, HOOK_LOCAL_OUT = 3 };

#define TABLE_NAME "acp-broker"
#define CHAIN_NAME "out"

/* A sequence of netlink(7) messages; `at` bytes are used. */
struct request {
	_Alignas(NLMSG_ALIGNTO) unsigned char bytes[REQUEST_MAX];
	size_t at;
	size_t message; // offset of the last message
	uint32_t count;
};

/* ---- writing ---- */

static void *take(struct request *request, size_t size)
{
	size_t aligned = NLMSG_ALIGN(size);
	assert(request->at + aligned <= sizeof(request->bytes));
	void *place = request->bytes + request->at;
	memset(place, 0, aligned);
	request->at += aligned;
	return place;
}

static void begin_message(struct request *request, unsigned type, unsigned flags)
{
	request->message = request->at;
	struct nlmsghdr *header = take(request, sizeof(*header));
	header->nlmsg_type = (uint16_t)type;
	header->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	header->nlmsg_seq = ++request->count;
}

static void end_message(struct request *request)
{
	struct nlmsghdr *header = (struct nlmsghdr *)(void *)(request->bytes + request->message);
	header->nlmsg_len = (uint32_t)(request->at - request->message);
}

static void put(struct request *request, unsigned type, const void *value, size_t size)
{
	struct nlattr *attribute = take(request, NLA_HDRLEN);
	attribute->nla_type = (uint16_t)type;
	attribute->nla_len = (uint16_t)(NLA_HDRLEN + size);
	memcpy(take(request, size), value, size);
}

static void put_text(struct request *request, unsigned type, const char *text)
{
	put(request, type, text, strlen(text) + 1);
}

/* nf_tables expects numbers in network byte order. */
static void put_number(struct request *request, unsigned type, uint32_t number)
{
	uint32_t value = htonl(number);
	put(request, type, &value, sizeof(value));
}

static size_t begin_nest(struct request *request, unsigned type)
{
	size_t place = request->at;
	struct nlattr *attribute = take(request, NLA_HDRLEN);
	attribute->nla_type = (uint16_t)(type | NLA_F_NESTED);
	return place;
}

static void end_nest(struct request *request, size_t place)
{
	struct nlattr *attribute = (struct nlattr *)(void *)(request->bytes + place);
	attribute->nla_len = (uint16_t)(request->at - place);
}

/* ---- requests ---- */

/*
 * Returns the first error in the answers, as an errno; 0 if there is none up to the answer to
 * `last`.
 */
static int read_answers(int fd, uint32_t last)
{
	_Alignas(NLMSG_ALIGNTO) unsigned char bytes[8192];
	for (;;) {
		ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
		if (got < 0 && errno == EINTR) {
			continue;
		}
		if (got <= 0) {
			return got < 0 ? errno : EPIPE;
		}
		size_t left = (size_t)got;
		const struct nlmsghdr *header = (const struct nlmsghdr *)(const void *)bytes;
		for (; NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
			const struct nlmsgerr *answer = NLMSG_DATA(header);
			if (header->nlmsg_type != NLMSG_ERROR) {
				continue;
			}
			if (answer->error != 0) {
				return -answer->error;
			}
			if (header->nlmsg_seq == last) {
				return 0;
			}
		}
	}
}

/* The kernel usually answers at once; the deadline ends the wait for an answer that never comes. */
static bool ask(const struct request *request, int protocol, uint32_t last, const char *what,
	struct error *err)
{
	const struct timeval deadline = {.tv_sec = 5};
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	ATTR_CLEANUP(fd_cleanup) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	int errnum = 0;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof(deadline)) != 0 ||
		sendto(fd, request->bytes, request->at, 0, (const struct sockaddr *)&kernel,
			sizeof(kernel)) != (ssize_t)request->at) {
		errnum = errno;
	} else {
		errnum = read_answers(fd, last);
	}
	if (errnum != 0) {
		error_set_errno(err, errnum, "%s", what);
		errno = errnum;
	}
	return errnum == 0;
}

bool nft_add_local_route(struct error *err)
{
	struct request request = {.at = 0};
	uint32_t loopback = if_nametoindex("lo");
	begin_message(&request, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK);
	struct rtmsg *route = take(&request, sizeof(*route));
	route->rtm_family = AF_INET;
	route->rtm_table = RT_TABLE_LOCAL;
	route->rtm_protocol = RTPROT_STATIC;
	route->rtm_scope = RT_SCOPE_HOST;
	route->rtm_type = RTN_LOCAL;
	put(&request, RTA_OIF, &loopback, sizeof(loopback));
	end_message(&request);
	return ask(&request, NETLINK_ROUTE, request.count, "adding the cell's route", err);
}

bool nft_add_address(uint32_t address, struct error *err)
{
	struct request request = {.at = 0};
	uint32_t value = htonl(address);
	begin_message(&request, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK);
	struct ifaddrmsg *message = take(&request, sizeof(*message));
	message->ifa_family = AF_INET;
	message->ifa_prefixlen = 32;
	message->ifa_scope = RT_SCOPE_HOST;
	message->ifa_index = if_nametoindex("lo");
	put(&request, IFA_LOCAL, &value, sizeof(value));
	end_message(&request);
	return ask(&request, NETLINK_ROUTE, request.count, "adding the cell's address", err);
}

/* ---- nf_tables ---- */

static void begin_nfnl(struct request *request, unsigned type, unsigned flags)
{
	bool is_batch = type == NFNL_MSG_BATCH_BEGIN || type == NFNL_MSG_BATCH_END;
	begin_message(request, is_batch ? type : NFNL_SUBSYS_NFTABLES << 8 | type, flags);
	struct nfgenmsg *header = take(request, sizeof(*header));
	header->nfgen_family = is_batch ? AF_UNSPEC : FAMILY_IPV4;
	header->version = NFNETLINK_V0;
	header->res_id = htons(is_batch ? NFNL_SUBSYS_NFTABLES : 0);
}

struct expression {
	size_t element;
	size_t data;
};

static struct expression begin_expression(struct request *request, const char *name)
{
	struct expression expression = {.element = begin_nest(request, NFTA_LIST_ELEM)};
	put_text(request, NFTA_EXPR_NAME, name);
	expression.data = begin_nest(request, NFTA_EXPR_DATA);
	return expression;
}

static void end_expression(struct request *request, struct expression expression)
{
	end_nest(request, expression.data);
	end_nest(request, expression.element);
}

static void put_compare(struct request *request, uint32_t operation, unsigned char value)
{
	struct expression expression = begin_expression(request, "cmp");
	put_number(request, NFTA_CMP_SREG, NFT_REG_1);
	put_number(request, NFTA_CMP_OP, operation);
	size_t data = begin_nest(request, NFTA_CMP_DATA);
	put(request, NFTA_DATA_VALUE, &value, sizeof(value));
	end_nest(request, data);
	end_expression(request, expression);
}

/* Matches if the first byte of the destination address is not 127. */
static void put_is_no_loopback(struct request *request)
{
	enum { DESTINATION_AT = 16 }; // in the header of IPv4
	struct expression expression = begin_expression(request, "payload");
	put_number(request, NFTA_PAYLOAD_DREG, NFT_REG_1);
	put_number(request, NFTA_PAYLOAD_BASE, NFT_PAYLOAD_NETWORK_HEADER);
	put_number(request, NFTA_PAYLOAD_OFFSET, DESTINATION_AT);
	put_number(request, NFTA_PAYLOAD_LEN, 1);
	end_expression(request, expression);
	put_compare(request, NFT_CMP_NEQ, IN_LOOPBACKNET);
}

static void put_is_tcp(struct request *request)
{
	struct expression expression = begin_expression(request, "meta");
	put_number(request, NFTA_META_DREG, NFT_REG_1);
	put_number(request, NFTA_META_KEY, NFT_META_L4PROTO);
	end_expression(request, expression);
	put_compare(request, NFT_CMP_EQ, IPPROTO_TCP);
}

static void put_redirect(struct request *request, uint16_t port)
{
	uint16_t value = htons(port);
	struct expression expression = begin_expression(request, "immediate");
	put_number(request, NFTA_IMMEDIATE_DREG, NFT_REG_1);
	size_t data = begin_nest(request, NFTA_IMMEDIATE_DATA);
	put(request, NFTA_DATA_VALUE, &value, sizeof(value));
	end_nest(request, data);
	end_expression(request, expression);
	expression = begin_expression(request, "redir");
	put_number(request, NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1);
	end_expression(request, expression);
}

bool nft_redirect(uint16_t port, struct error *err)
{
	struct request request = {.at = 0};
	begin_nfnl(&request, NFNL_MSG_BATCH_BEGIN, 0);
	end_message(&request);

	begin_nfnl(&request, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	put_text(&request, NFTA_TABLE_NAME, TABLE_NAME);
	end_message(&request);

	begin_nfnl(&request, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	put_text(&request, NFTA_CHAIN_TABLE, TABLE_NAME);
	put_text(&request, NFTA_CHAIN_NAME, CHAIN_NAME);
	size_t hook = begin_nest(&request, NFTA_CHAIN_HOOK);
	put_number(&request, NFTA_HOOK_HOOKNUM, HOOK_LOCAL_OUT);
	put_number(&request, NFTA_HOOK_PRIORITY, (uint32_t)CHAIN_PRIORITY);
	end_nest(&request, hook);
	put_text(&request, NFTA_CHAIN_TYPE, "nat");
	end_message(&request);

	begin_nfnl(&request, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK);
	put_text(&request, NFTA_RULE_TABLE, TABLE_NAME);
	put_text(&request, NFTA_RULE_CHAIN, CHAIN_NAME);
	size_t list = begin_nest(&request, NFTA_RULE_EXPRESSIONS);
	put_is_no_loopback(&request);
	put_is_tcp(&request);
	put_redirect(&request, port);
	end_nest(&request, list);
	end_message(&request);
	uint32_t last = request.count;

	begin_nfnl(&request, NFNL_MSG_BATCH_END, 0);
	end_message(&request);
	return ask(&request, NETLINK_NETFILTER, last, "redirecting the cell's connections", err);
}
