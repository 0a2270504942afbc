#include "rpc/scan.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum {
    FIELDS_MAX = 256, /* of one message type; a unit test sends every type through */
    PATH_MAX_BYTES = 512,
    FIELD_NUMBER_MAX = (1 << 29) - 1,
    /* What protobuf-c and malloc spend on each allocation, each field read and each unknown field.
     * Rounded up. */
    ALLOCATION_BYTES = 16,
    SCANNED_FIELD_BYTES = 64,
    UNKNOWN_FIELD_BYTES = 32,
};

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_LENGTH = 2,
    WIRE_FIXED32 = 5,
};

/* A message that is being read. */
struct frame {
    const ProtobufCMessageDescriptor *descriptor;
    const char *name; /* of the field it is the value of; NULL for the outermost */
    const uint8_t *end;
    uint64_t seen[FIELDS_MAX / 64]; /* single message fields that have their value */
};

struct scan {
    const uint8_t *at;
    struct frame frames[RPC_SCAN_DEPTH];
    unsigned depth; /* frames in use */
    unsigned depth_limit;
    size_t elements_left;
    size_t text_left;
    size_t memory_left;
    struct error *error;
};

static void append(char *path, const char *name)
{
    size_t used = strlen(path);
    snprintf(path + used, PATH_MAX_BYTES - used, "%s%s", used == 0 ? "" : ".", name);
}

/* Reports what is wrong with `field` of the message being read, or with that message itself when
 * `field` is NULL. */
static bool refuse(struct scan *scan, const ProtobufCFieldDescriptor *field, const char *what)
{
    char path[PATH_MAX_BYTES] = "";

    for (unsigned i = 1; i < scan->depth; i++)
        append(path, scan->frames[i].name);
    if (field != NULL)
        append(path, field->name);
    if (path[0] == '\0')
        append(path, scan->frames[0].descriptor->short_name);
    error_add_violation(scan->error, path, "%s", what);
    return false;
}

/* Reads a varint of at most `maximum` bytes that fits in 64 bits. */
static bool read_varint(struct scan *scan, const uint8_t *end, size_t maximum, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (size_t i = 0; i < maximum && scan->at + i < end; i++) {
        uint8_t byte = scan->at[i];
        if (i == 9 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 0x7F) << (7 * i);
        if ((byte & 0x80) == 0) {
            scan->at += i + 1;
            *ret_value = value;
            return true;
        }
    }
    return false;
}

static bool spend(size_t *left, size_t amount)
{
    if (amount > *left)
        return false;
    *left -= amount;
    return true;
}

static bool spend_memory(struct scan *scan, const ProtobufCFieldDescriptor *field, size_t amount)
{
    return spend(&scan->memory_left, amount) ||
           refuse(scan, field, "needs more memory than a message may take");
}

static bool spend_elements(struct scan *scan, const ProtobufCFieldDescriptor *field, size_t count)
{
    return spend(&scan->elements_left, count) ||
           refuse(scan, field, "the message has too many fields and elements");
}

/* The wire type and the size in memory of one value. */
static void describe_type(ProtobufCType type, enum wire_type *ret_wire, size_t *ret_size)
{
    *ret_size = 4;
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT64:
        *ret_size = 8;
        *ret_wire = WIRE_VARINT;
        break;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        *ret_size = 8;
        *ret_wire = WIRE_FIXED64;
        break;
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        *ret_wire = WIRE_FIXED32;
        break;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        *ret_size = sizeof(void *);
        *ret_wire = WIRE_LENGTH;
        break;
    case PROTOBUF_C_TYPE_BYTES:
        *ret_size = sizeof(ProtobufCBinaryData);
        *ret_wire = WIRE_LENGTH;
        break;
    default: /* int32, sint32, uint32, bool, enum */
        *ret_wire = WIRE_VARINT;
        break;
    }
}

static bool enter_message(struct scan *scan, const ProtobufCMessageDescriptor *descriptor,
                          const char *name, size_t length)
{
    scan->frames[scan->depth++] = (struct frame){
        .descriptor = descriptor,
        .name = name,
        .end = scan->at + length,
    };
    if (descriptor->n_fields > FIELDS_MAX)
        return refuse(scan, NULL, "is of a type with more fields than the scan can follow");
    return spend_memory(scan, NULL, descriptor->sizeof_message + ALLOCATION_BYTES);
}

static bool check_submessage(struct scan *scan, const ProtobufCFieldDescriptor *field,
                             size_t length)
{
    struct frame *frame = &scan->frames[scan->depth - 1];
    size_t index = (size_t)(field - frame->descriptor->fields);
    uint64_t bit = UINT64_C(1) << (index % 64);

    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        if ((frame->seen[index / 64] & bit) != 0)
            return refuse(scan, field, "is given more than once");
        frame->seen[index / 64] |= bit;
    }
    if (scan->depth >= scan->depth_limit)
        return refuse(scan, field, "is nested too deeply");
    return enter_message(scan, field->descriptor, field->name, length);
}

static bool check_text(struct scan *scan, const ProtobufCFieldDescriptor *field, size_t length)
{
    const uint8_t *text = scan->at;

    if (!spend(&scan->text_left, length))
        return refuse(scan, field, "the message has too many bytes of text and data");
    if (!spend_memory(scan, field, length + 1 + ALLOCATION_BYTES))
        return false;
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        if (memchr(text, '\0', length) != NULL)
            return refuse(scan, field, "must not contain a NUL character");
        if (!text_is_utf8(text, length))
            return refuse(scan, field, "must be valid UTF-8");
    }
    scan->at += length;
    return true;
}

static bool check_packed(struct scan *scan, const ProtobufCFieldDescriptor *field, size_t length)
{
    const uint8_t *end = scan->at + length;
    enum wire_type wire;
    size_t size, count = 0;

    describe_type(field->type, &wire, &size);
    if (wire == WIRE_VARINT) {
        for (uint64_t ignored; scan->at < end; count++)
            if (!read_varint(scan, end, 10, &ignored))
                return refuse(scan, field, "holds a number that is cut short or too long");
    } else {
        if (length % size != 0)
            return refuse(scan, field, "is cut short");
        count = length / size;
        scan->at = end;
    }
    /* protobuf-c reserves a place for each byte of packed booleans. */
    size_t places = field->type == PROTOBUF_C_TYPE_BOOL ? length : count;
    return spend_elements(scan, field, count) && spend_memory(scan, field, places * size);
}

/* A length and what it covers, of a known field. */
static bool check_length_delimited(struct scan *scan, const ProtobufCFieldDescriptor *field)
{
    const uint8_t *end = scan->frames[scan->depth - 1].end;
    uint64_t length;

    if (!read_varint(scan, end, 5, &length) || length > (size_t)(end - scan->at))
        return refuse(scan, field, "is cut short");
    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return check_submessage(scan, field, length);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
        return check_text(scan, field, length);
    default:
        return check_packed(scan, field, length);
    }
}

static bool skip_fixed(struct scan *scan, const ProtobufCFieldDescriptor *field, size_t size)
{
    if ((size_t)(scan->frames[scan->depth - 1].end - scan->at) < size)
        return refuse(scan, field, "is cut short");
    scan->at += size;
    return true;
}

/* The value of a field that has one value on the wire and no length. */
static bool skip_number(struct scan *scan, const ProtobufCFieldDescriptor *field, unsigned wire)
{
    uint64_t ignored;

    if (wire == WIRE_FIXED64)
        return skip_fixed(scan, field, 8);
    if (wire == WIRE_FIXED32)
        return skip_fixed(scan, field, 4);
    return read_varint(scan, scan->frames[scan->depth - 1].end, 10, &ignored) ||
           refuse(scan, field, "holds a number that is cut short or too long");
}

static bool check_known(struct scan *scan, const ProtobufCFieldDescriptor *field, unsigned wire)
{
    bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    enum wire_type expected;
    size_t size;

    describe_type(field->type, &expected, &size);
    /* Repeated numbers may come packed or one by one, whatever the source says. */
    if (wire != (unsigned)expected && !(repeated && wire == WIRE_LENGTH))
        return refuse(scan, field, "has the wrong wire type");
    if (repeated && wire == (unsigned)expected && !spend_memory(scan, field, size))
        return false;
    return wire == WIRE_LENGTH ? check_length_delimited(scan, field)
                               : skip_number(scan, field, wire);
}

/* protobuf-c keeps a copy of what it does not know. */
static bool check_unknown(struct scan *scan, unsigned wire)
{
    const uint8_t *start = scan->at;

    if (wire == WIRE_LENGTH) {
        const uint8_t *end = scan->frames[scan->depth - 1].end;
        uint64_t length;
        if (!read_varint(scan, end, 5, &length) || length > (size_t)(end - scan->at))
            return refuse(scan, NULL, "has an unknown field that is cut short");
        scan->at += length;
    } else if (!skip_number(scan, NULL, wire)) {
        return false;
    }
    size_t kept = (size_t)(scan->at - start);
    return spend_memory(scan, NULL, UNKNOWN_FIELD_BYTES + ALLOCATION_BYTES + kept);
}

static bool scan_field(struct scan *scan)
{
    const struct frame *frame = &scan->frames[scan->depth - 1];
    uint64_t tag;

    if (!read_varint(scan, frame->end, 5, &tag))
        return refuse(scan, NULL, "has a field number that is cut short or too long");
    uint64_t number = tag >> 3;
    unsigned wire = tag & 7;
    if (number == 0 || number > FIELD_NUMBER_MAX)
        return refuse(scan, NULL, "has a field number that does not exist");
    if (wire != WIRE_VARINT && wire != WIRE_FIXED64 && wire != WIRE_LENGTH && wire != WIRE_FIXED32)
        return refuse(scan, NULL, "has a field with a wire type that is not supported");
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(frame->descriptor, (unsigned)number);
    if (!spend_elements(scan, field, 1) || !spend_memory(scan, field, SCANNED_FIELD_BYTES))
        return false;
    return field == NULL ? check_unknown(scan, wire) : check_known(scan, field, wire);
}

static size_t limit_or(size_t limit, size_t standard)
{
    return limit == 0 ? standard : limit;
}

bool rpc_scan(const ProtobufCMessageDescriptor *descriptor, const void *data, size_t length,
              const struct rpc_scan_limits *limits, struct error *error)
{
    static const struct rpc_scan_limits standard;
    if (limits == NULL)
        limits = &standard;
    struct scan scan;
    /* The frames are initialised as they come into use. */
    scan.at = data;
    scan.depth = 0;
    scan.depth_limit =
        limits->depth == 0 || limits->depth > RPC_SCAN_DEPTH ? RPC_SCAN_DEPTH : limits->depth;
    scan.elements_left = limit_or(limits->elements, RPC_SCAN_ELEMENTS);
    scan.text_left = limit_or(limits->text_bytes, RPC_SCAN_TEXT_BYTES);
    scan.memory_left = limit_or(limits->memory_bytes, RPC_SCAN_MEMORY_BYTES);
    scan.error = error;
    error_clear(error);

    static const uint8_t nothing[1];
    if (length == 0)
        scan.at = nothing;
    if (!enter_message(&scan, descriptor, NULL, length))
        return false;
    while (scan.depth > 0) {
        if (scan.at == scan.frames[scan.depth - 1].end)
            scan.depth--;
        else if (!scan_field(&scan))
            return false;
    }
    return true;
}
