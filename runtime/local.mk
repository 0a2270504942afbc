# Build rules of runtime/.
# The process-maker and everything that makes a sandbox's boundary: no gRPC, no OpenSSL.
noinst_LIBRARIES += libruntime.a
libruntime_a_SOURCES = \
	runtime/copied_root.c runtime/copied_root.h \
	runtime/copy_helper.c runtime/copy_helper.h \
	runtime/descriptors.c runtime/descriptors.h \
	runtime/etc_skeleton.c runtime/etc_skeleton.h \
	runtime/evidence.c \
	runtime/exec_child.c runtime/exec_child.h \
	runtime/identity.c runtime/identity.h \
	runtime/landlock.c runtime/landlock.h \
	runtime/limits.c runtime/limits.h \
	runtime/maker.c runtime/maker.h runtime/maker_internal.h \
	runtime/maker_copier.c \
	runtime/maker_protocol.c runtime/maker_protocol.h \
	runtime/maker_session.c \
	runtime/mounts.c runtime/mounts.h \
	runtime/namespaces.c runtime/namespaces.h \
	runtime/places.c runtime/places.h \
	runtime/policy_path.c runtime/policy_path.h \
	runtime/process_maker.c runtime/process_maker.h \
	runtime/process_tree.c runtime/process_tree.h \
	runtime/reaper.c runtime/reaper.h \
	runtime/root.c runtime/root.h \
	runtime/seccomp.c runtime/seccomp.h \
	runtime/silence.c runtime/silence.h \
	runtime/syscalls.c runtime/syscalls.h \
	runtime/terminal.c runtime/terminal.h
include runtime/service.mk
