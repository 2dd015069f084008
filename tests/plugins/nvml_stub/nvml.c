/* A stand-in for NVIDIA's libnvidia-ml.so.1, for tests: the real pynvml loads it and calls it.
 *
 * What it says stands in the file that STUB_NVML_STATE names, read again whenever it was replaced, one `key=value` on a
 * line:
 *   devices             number of devices (2)
 *   init                what nvmlInit returns (0): 9 driver not loaded, 18 version mismatch, 4 no permission
 *   broken              what every call after nvmlInit returns, as above (0)
 *   hang                1: every call after nvmlInit never returns; hang_in, a function's name: that one never does
 *   lost                index of a device that is lost (-1)
 *   unsupported         a function's name that is not supported; failing, one that fails with an unknown error;
 *                       unknown_question, one whose arguments the driver does not know;
 *                       reset_required, one that waits for a reset of the device
 *   unsupported_field   a field id that nvmlDeviceGetFieldValues does not support
 *   xids                `index:code,index:code`; each list is told once
 *   events_unsupported  1: no event sets
 *   wait_says           what a wait for events returns when there is none (10: timeout)
 *   wait_step_ms        how often a wait looks for an event (50); a real driver sleeps until there is one
 *   clock_max, pcie_generation_max, pcie_width_max, links, fabric_state, fabric_status, fabric_health
 *                       of every device
 *   KEY_N               value KEY of device N: uuid, serial, temperature, memory_temperature, ecc, ecc_aggregate,
 *                       ecc_correctable, remap_pending, remap_failed, retired, retired_double, retirement_pending,
 *                       throttle, process, memory_used, utilisation, clock, pcie_generation, pcie_width, replays, crc,
 *                       link_replays, link_recoveries, link_down (index of a link), persistence, mig
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SUCCESS = 0,
    INVALID_ARGUMENT = 2,
    RESET_REQUIRED = 16,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    TIMEOUT = 10,
    GPU_IS_LOST = 15,
    UNKNOWN = 999,
};

typedef int Status;
typedef struct Device *Handle;

struct Device {
    int index;
};

typedef struct {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} PciInfo;

typedef struct {
    unsigned long long total, free, used;
} Memory;

typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} MemoryV2;

typedef struct {
    unsigned id, scope;
    long long timestamp, latency_us;
    unsigned value_type, status;
    union {
        unsigned small;
        unsigned long long large;
    } value;
} Field;

typedef struct {
    unsigned version;
    unsigned char cluster[16];
    unsigned status, clique, state, health;
} Fabric;

typedef struct {
    unsigned gpu, memory;
} Utilization;

typedef struct {
    Handle device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
} Event;

typedef struct {
    unsigned pid;
    unsigned long long used_memory;
    unsigned gpu_instance, compute_instance;
} Process;

static struct Device devices[16];

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

/* The state file, read again when another stands in its place: most calls ask for several keys. */
static const char *state(void) {
    static char content[8192];
    static struct stat known;
    struct stat now;
    const char *path = getenv("STUB_NVML_STATE");
    if (!path || stat(path, &now) != 0) return "";
    if (now.st_ino != known.st_ino || now.st_mtim.tv_sec != known.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != known.st_mtim.tv_nsec) {
        FILE *file = fopen(path, "r");
        if (!file) return "";
        content[fread(content, 1, sizeof content - 1, file)] = 0;
        fclose(file);
        known = now;
    }
    return content;
}

static int text(const char *key, char *value, size_t size) {
    size_t length = strlen(key);
    int found = 0;
    pthread_mutex_lock(&one_at_a_time);
    for (const char *line = state(); line && *line && !found; line = strchr(line, '\n'), line += line != NULL) {
        if (strncmp(line, key, length) == 0 && line[length] == '=') {
            const char *begin = line + length + 1;
            snprintf(value, size, "%.*s", (int)strcspn(begin, "\n"), begin);
            found = 1;
        }
    }
    pthread_mutex_unlock(&one_at_a_time);
    return found;
}

static long number(const char *key, long otherwise) {
    char value[64];
    return text(key, value, sizeof value) ? atol(value) : otherwise;
}

static int text_of_device(const char *key, Handle device, char *value, size_t size) {
    char full[128];
    snprintf(full, sizeof full, "%s_%d", key, device->index);
    return text(full, value, size);
}

static long of_device(const char *key, Handle device, long otherwise) {
    char value[64];
    return text_of_device(key, device, value, sizeof value) ? atol(value) : otherwise;
}

static int is_named(const char *key, const char *function) {
    char value[256];
    return text(key, value, sizeof value) && strcmp(value, function) == 0;
}

static Status begin(const char *function, Handle device) {
    while (number("hang", 0) || is_named("hang_in", function)) sleep(1);
    if (number("broken", 0)) return number("broken", 0);
    if (device && number("lost", -1) == device->index) return GPU_IS_LOST;
    if (is_named("unsupported", function)) return NOT_SUPPORTED;
    if (is_named("failing", function)) return UNKNOWN;
    if (is_named("unknown_question", function)) return INVALID_ARGUMENT;
    if (is_named("reset_required", function)) return RESET_REQUIRED;
    return SUCCESS;
}

#define BEGIN(device)                               \
    do {                                            \
        Status status = begin(__func__, device);    \
        if (status != SUCCESS) return status;       \
    } while (0)

Status nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    for (int index = 0; index < 16; index++) devices[index].index = index;
    return number("init", SUCCESS);
}

Status nvmlShutdown(void) { return SUCCESS; }

const char *nvmlErrorString(Status status) {
    (void)status;
    return "as the stub was told";
}

Status nvmlSystemGetDriverVersion(char *version, unsigned length) {
    BEGIN(NULL);
    snprintf(version, length, "570.86.15");
    return SUCCESS;
}

Status nvmlSystemGetNVMLVersion(char *version, unsigned length) {
    BEGIN(NULL);
    snprintf(version, length, "12.570.86.15");
    return SUCCESS;
}

Status nvmlDeviceGetCount_v2(unsigned *count) {
    BEGIN(NULL);
    *count = number("devices", 2);
    return SUCCESS;
}

Status nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle *device) {
    BEGIN(&devices[index]);
    *device = &devices[index];
    return SUCCESS;
}

Status nvmlDeviceGetIndex(Handle device, unsigned *index) {
    BEGIN(device);
    *index = device->index;
    return SUCCESS;
}

Status nvmlDeviceGetName(Handle device, char *name, unsigned length) {
    BEGIN(device);
    snprintf(name, length, "NVIDIA H100 80GB HBM3");
    return SUCCESS;
}

Status nvmlDeviceGetUUID(Handle device, char *uuid, unsigned length) {
    BEGIN(device);
    if (!text_of_device("uuid", device, uuid, length)) snprintf(uuid, length, "GPU-stub-%d", device->index);
    return SUCCESS;
}

Status nvmlDeviceGetHandleByUUID(const char *uuid, Handle *device) {
    char known[96];
    for (int index = 0; index < 16; index++) {
        nvmlDeviceGetUUID(&devices[index], known, sizeof known);
        if (!strcmp(known, uuid)) {
            *device = &devices[index];
            return SUCCESS;
        }
    }
    return NOT_FOUND;
}

Status nvmlDeviceGetSerial(Handle device, char *serial, unsigned length) {
    BEGIN(device);
    if (!text_of_device("serial", device, serial, length)) snprintf(serial, length, "165482300%04d", device->index);
    return SUCCESS;
}

Status nvmlDeviceGetPciInfo_v3(Handle device, PciInfo *info) {
    BEGIN(device);
    memset(info, 0, sizeof *info);
    info->bus = 0x10 + device->index;
    snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", info->bus);
    return SUCCESS;
}

Status nvmlDeviceGetTemperature(Handle device, unsigned sensor, unsigned *celsius) {
    (void)sensor;
    BEGIN(device);
    *celsius = of_device("temperature", device, 41);
    return SUCCESS;
}

Status nvmlDeviceGetTemperatureThreshold(Handle device, unsigned threshold, unsigned *celsius) {
    BEGIN(device);
    *celsius = threshold == 2 ? 95 : 89; /* 2: of the memory */
    return SUCCESS;
}

Status nvmlDeviceGetTotalEccErrors(Handle device, unsigned type, unsigned counter, unsigned long long *count) {
    BEGIN(device);
    if (type == 0)
        *count = of_device("ecc_correctable", device, 0);
    else if (counter == 0)
        *count = of_device("ecc", device, 0);
    else
        *count = of_device("ecc_aggregate", device, of_device("ecc", device, 0));
    return SUCCESS;
}

Status nvmlDeviceGetRemappedRows(Handle device, unsigned *correctable, unsigned *uncorrectable, unsigned *pending,
                                 unsigned *failed) {
    BEGIN(device);
    *correctable = *uncorrectable = 0;
    *pending = of_device("remap_pending", device, 0);
    *failed = of_device("remap_failed", device, 0);
    return SUCCESS;
}

Status nvmlDeviceGetCurrentClocksThrottleReasons(Handle device, unsigned long long *reasons) {
    BEGIN(device);
    *reasons = of_device("throttle", device, 1); /* 1: idle */
    return SUCCESS;
}

Status nvmlDeviceGetMemoryInfo(Handle device, Memory *memory) {
    BEGIN(device);
    memory->total = 80ull << 30;
    memory->used = 1ull << 30;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

Status nvmlDeviceGetMemoryInfo_v2(Handle device, MemoryV2 *memory) {
    BEGIN(device);
    memory->total = 80ull << 30;
    memory->reserved = 1ull << 29;
    memory->used = of_device("memory_used", device, 4 << 20);
    memory->free = memory->total - memory->reserved - memory->used;
    return SUCCESS;
}

Status nvmlDeviceGetUtilizationRates(Handle device, Utilization *rates) {
    BEGIN(device);
    rates->gpu = rates->memory = of_device("utilisation", device, 0);
    return SUCCESS;
}

Status nvmlDeviceGetPowerUsage(Handle device, unsigned *milliwatts) {
    BEGIN(device);
    *milliwatts = 70500;
    return SUCCESS;
}

Status nvmlDeviceGetClockInfo(Handle device, unsigned type, unsigned *mhz) {
    BEGIN(device);
    *mhz = of_device("clock", device, 1000) + type;
    return SUCCESS;
}

Status nvmlDeviceGetMaxClockInfo(Handle device, unsigned type, unsigned *mhz) {
    BEGIN(device);
    *mhz = number("clock_max", 1980) + type;
    return SUCCESS;
}

Status nvmlDeviceGetCurrPcieLinkGeneration(Handle device, unsigned *generation) {
    BEGIN(device);
    *generation = of_device("pcie_generation", device, 1);
    return SUCCESS;
}

Status nvmlDeviceGetMaxPcieLinkGeneration(Handle device, unsigned *generation) {
    BEGIN(device);
    *generation = number("pcie_generation_max", 5);
    return SUCCESS;
}

Status nvmlDeviceGetCurrPcieLinkWidth(Handle device, unsigned *width) {
    BEGIN(device);
    *width = of_device("pcie_width", device, 16);
    return SUCCESS;
}

Status nvmlDeviceGetMaxPcieLinkWidth(Handle device, unsigned *width) {
    BEGIN(device);
    *width = number("pcie_width_max", 16);
    return SUCCESS;
}

Status nvmlDeviceGetPersistenceMode(Handle device, unsigned *mode) {
    BEGIN(device);
    *mode = of_device("persistence", device, 1);
    return SUCCESS;
}

Status nvmlDeviceGetMigMode(Handle device, unsigned *current, unsigned *pending) {
    BEGIN(device);
    *current = *pending = of_device("mig", device, 0);
    return SUCCESS;
}

Status nvmlDeviceGetNvLinkState(Handle device, unsigned link, unsigned *active) {
    BEGIN(device);
    if ((long)link >= number("links", 18)) return INVALID_ARGUMENT;
    *active = of_device("link_down", device, -1) != (long)link;
    return SUCCESS;
}

Status nvmlDeviceGetGpuFabricInfoV(Handle device, Fabric *fabric) {
    BEGIN(device);
    fabric->state = number("fabric_state", 3); /* 3: completed */
    fabric->status = number("fabric_status", SUCCESS);
    fabric->health = number("fabric_health", 0);
    return SUCCESS;
}

static const struct {
    unsigned id;
    const char *key;
    long otherwise;
    int is_large;
} fields[] = {
    {29, "retired", 0, 0},          {30, "retired_double", 0, 0}, {31, "retirement_pending", 0, 0},
    {38, "crc", 0, 1},              {52, "link_replays", 0, 1},   {59, "link_recoveries", 0, 1},
    {82, "memory_temperature", 45, 0}, {94, "replays", 0, 0},
};

static Status fill(Field *field, Handle device) {
    if (number("unsupported_field", -1) == (long)field->id) return NOT_SUPPORTED;
    for (size_t each = 0; each < sizeof fields / sizeof *fields; each++) {
        if (fields[each].id != field->id) continue;
        long value = of_device(fields[each].key, device, fields[each].otherwise);
        field->value_type = fields[each].is_large ? 3 : 1; /* unsigned long long, unsigned int */
        field->value.large = 0xdeadbeefull << 32;          /* what is not written to is not zero in the real one either */
        if (fields[each].is_large)
            field->value.large = value;
        else
            field->value.small = value;
        return SUCCESS;
    }
    return NOT_SUPPORTED;
}

Status nvmlDeviceGetFieldValues(Handle device, int count, Field *values) {
    BEGIN(device);
    for (int each = 0; each < count; each++) values[each].status = fill(&values[each], device);
    return SUCCESS;
}

Status nvmlDeviceGetComputeRunningProcesses_v3(Handle device, unsigned *count, Process *processes) {
    BEGIN(device);
    long pid = of_device("process", device, 0);
    unsigned room = *count;
    *count = pid ? 1 : 0;
    if (pid == 0) return SUCCESS;
    if (room == 0) return INSUFFICIENT_SIZE;
    memset(processes, 0, sizeof *processes);
    processes->pid = pid;
    return SUCCESS;
}

Status nvmlDeviceGetGraphicsRunningProcesses_v3(Handle device, unsigned *count, Process *processes) {
    (void)processes;
    BEGIN(device);
    *count = 0;
    return SUCCESS;
}

Status nvmlEventSetCreate(void **set) {
    if (number("events_unsupported", 0)) return NOT_SUPPORTED;
    BEGIN(NULL);
    *set = devices;
    return SUCCESS;
}

Status nvmlDeviceRegisterEvents(Handle device, unsigned long long types, void *set) {
    (void)types;
    (void)set;
    BEGIN(device);
    return SUCCESS;
}

/* The next event of the list that the state file holds, if there is one that has not been told. */
static int next_event(Event *event) {
    static char told[256];
    static int next;
    char all[256] = "";
    int index, code, read;
    text("xids", all, sizeof all);
    pthread_mutex_lock(&one_at_a_time);
    if (strcmp(all, told) != 0) {
        strcpy(told, all);
        next = 0;
    }
    int found = sscanf(told + next, "%d:%d%n", &index, &code, &read) == 2;
    if (found) {
        next += read;
        if (told[next] == ',') next++;
        memset(event, 0, sizeof *event);
        event->device = &devices[index];
        event->data = code;
    }
    pthread_mutex_unlock(&one_at_a_time);
    return found;
}

Status nvmlEventSetWait_v2(void *set, Event *event, unsigned timeout_ms) {
    const unsigned step_ms = number("wait_step_ms", 50);
    (void)set;
    for (unsigned waited_ms = 0;; waited_ms += step_ms) {
        BEGIN(NULL);
        if (next_event(event)) return SUCCESS;
        if (waited_ms >= timeout_ms) return number("wait_says", TIMEOUT);
        usleep(step_ms * 1000);
    }
}
