/* Sockets: the host's, and families that reach it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "attempts.h"

static int connect_unix(const char *name, bool abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    memcpy(address.sun_path + (abstract ? 1 : 0), name, length);
    int handle = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
    int result = attempt_outcome(connect(handle, (struct sockaddr *)&address, size));
    close(handle);
    return result;
}

static int host_socket(void)
{
    return connect_unix(attempt_need("HOST_SOCKET"), false);
}

static int host_abstract_socket(void)
{
    return connect_unix(attempt_need("HOST_ABSTRACT"), true);
}

static int host_usr_socket(void)
{
    return connect_unix(attempt_need("HOST_USR_SOCKET"), false);
}

static int system_bus(void)
{
    return connect_unix("/run/dbus/system_bus_socket", false);
}

static int connect_inet(const char *host, const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    inet_pton(AF_INET, host, &address.sin_addr);
    int handle = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result = attempt_outcome(connect(handle, (struct sockaddr *)&address, sizeof(address)));
    close(handle);
    return result;
}

static int host_loopback(void)
{
    return connect_inet("127.0.0.1", attempt_need("HOST_PORT"));
}

static int internet(void)
{
    return connect_inet("192.0.2.1", "80");
}

static int try_socket(int domain, int type, int protocol)
{
    int handle = socket(domain, type | SOCK_CLOEXEC, protocol);
    int result = attempt_outcome(handle);
    if (handle >= 0)
        close(handle);
    return result;
}

static int raw_socket(void)
{
    return try_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

static int raw_socket_6(void)
{
    return try_socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
}

static int packet_socket(void)
{
    return try_socket(AF_PACKET, SOCK_RAW, 0);
}

static int vsock_socket(void)
{
    return try_socket(AF_VSOCK, SOCK_STREAM, 0);
}

static int bluetooth_socket(void)
{
    return try_socket(AF_BLUETOOTH, SOCK_RAW, 1);
}

static int crypto_socket(void)
{
    return try_socket(AF_ALG, SOCK_SEQPACKET, 0);
}

static int audit_netlink(void)
{
    return try_socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT);
}

static int netfilter_netlink(void)
{
    return try_socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
}

static int uevent_netlink(void)
{
    return try_socket(AF_NETLINK, SOCK_DGRAM, NETLINK_KOBJECT_UEVENT);
}

/* The domain's high half is not looked at by the kernel; a filter must not look either. */
static int packet_socket_high_bits(void)
{
    return attempt_outcome(syscall(SYS_socket, 0x100000000L | AF_PACKET, SOCK_RAW, 0));
}

/* The route family is there, but only to look. */
static int new_interface(void)
{
    struct {
        struct nlmsghdr header;
        struct ifinfomsg message;
    } request = {
        .header = {.nlmsg_len = sizeof(request),
                   .nlmsg_type = RTM_NEWLINK,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE},
    };
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char rest[256];
    } answer;
    int handle = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (handle < 0)
        return ENOTSUP;
    if (send(handle, &request, sizeof(request), 0) < 0 ||
        recv(handle, &answer, sizeof(answer), 0) < 0)
        return errno;
    close(handle);
    return -answer.error.error;
}

const struct attempt ATTEMPTS_SOCKETS[] = {
    {"host-socket", host_socket, ENOENT, 0, CONTROL},
    {"host-abstract-socket", host_abstract_socket, ECONNREFUSED, 0, CONTROL},
    {"host-usr-socket", host_usr_socket, ECONNREFUSED, 0, CONTROL | NEEDS_USR},
    {"system-bus", system_bus, ENOENT, 0, 0},
    {"host-loopback", host_loopback, ECONNREFUSED, 0, CONTROL},
    {"internet", internet, ENETUNREACH, 0, 0},
    {"raw-socket", raw_socket, EPERM, 0, CONTROL},
    {"raw-socket-6", raw_socket_6, EPERM, 0, CONTROL},
    {"packet-socket", packet_socket, EPERM, 0, CONTROL},
    {"packet-socket-high-bits", packet_socket_high_bits, EPERM, 0, CONTROL},
    {"vsock-socket", vsock_socket, EPERM, 0, 0},
    {"bluetooth-socket", bluetooth_socket, EPERM, 0, 0},
    {"crypto-socket", crypto_socket, EAFNOSUPPORT, 0, 0},
    {"audit-netlink", audit_netlink, EPERM, 0, 0},
    {"netfilter-netlink", netfilter_netlink, EPERM, 0, CONTROL},
    {"uevent-netlink", uevent_netlink, EPERM, 0, CONTROL},
    {"new-interface", new_interface, EPERM, 0, 0},
    {NULL, NULL, 0, 0, 0},
};
