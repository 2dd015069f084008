/* A stand-in for NVIDIA's libnvidia-ml.so.1, for tests: the real pynvml loads it and calls it.
 *
 * What it says stands in the file that STUB_NVML_STATE names, read again at every call, one `key=value` on a line:
 *   devices             number of devices (2)
 *   init                what nvmlInit returns (0): 9 driver not loaded, 18 version mismatch, 4 no permission
 *   broken              what every call after nvmlInit returns, as above (0)
 *   hang                1: every call after nvmlInit never returns; hang_in, a function's name: that one never does
 *   lost                index of a device that is lost (-1)
 *   unsupported         a function's name that is not supported; failing, one that fails with an unknown error
 *   xids                `index:code,index:code`; each list is told once
 *   events_unsupported  1: no event sets
 *   temperature_N, ecc_N, remap_pending_N, remap_failed_N, throttle_N, process_N   values of device N
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SUCCESS = 0,
    NOT_SUPPORTED = 3,
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

static int text(const char *key, char *value, size_t size) {
    char line[4096];
    size_t length = strlen(key);
    const char *path = getenv("STUB_NVML_STATE");
    FILE *file = path ? fopen(path, "r") : NULL;
    int found = 0;
    while (file && !found && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, length) == 0 && line[length] == '=') {
            line[strcspn(line, "\n")] = 0;
            snprintf(value, size, "%s", line + length + 1);
            found = 1;
        }
    }
    if (file) fclose(file);
    return found;
}

static long number(const char *key, long otherwise) {
    char value[64];
    return text(key, value, sizeof value) ? atol(value) : otherwise;
}

static long of_device(const char *key, Handle device, long otherwise) {
    char full[128];
    snprintf(full, sizeof full, "%s_%d", key, device->index);
    return number(full, otherwise);
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
    snprintf(uuid, length, "GPU-stub-%d", device->index);
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
    (void)threshold;
    BEGIN(device);
    *celsius = 89;
    return SUCCESS;
}

Status nvmlDeviceGetTotalEccErrors(Handle device, unsigned type, unsigned counter, unsigned long long *count) {
    (void)type;
    (void)counter;
    BEGIN(device);
    *count = of_device("ecc", device, 0);
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
    *reasons = of_device("throttle", device, 1);
    return SUCCESS;
}

Status nvmlDeviceGetMemoryInfo(Handle device, Memory *memory) {
    BEGIN(device);
    memory->total = 80ull << 30;
    memory->used = 1ull << 30;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

Status nvmlDeviceGetUtilizationRates(Handle device, Utilization *rates) {
    BEGIN(device);
    rates->gpu = rates->memory = 7;
    return SUCCESS;
}

Status nvmlDeviceGetPowerUsage(Handle device, unsigned *milliwatts) {
    BEGIN(device);
    *milliwatts = 70500;
    return SUCCESS;
}

Status nvmlDeviceGetClockInfo(Handle device, unsigned type, unsigned *mhz) {
    BEGIN(device);
    *mhz = 1000 + type;
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

Status nvmlEventSetWait_v2(void *set, Event *event, unsigned timeout_ms) {
    static char told[256];
    static int next;
    char all[256] = "";
    (void)set;
    (void)timeout_ms;
    BEGIN(NULL);
    text("xids", all, sizeof all);
    if (strcmp(all, told) != 0) {
        strcpy(told, all);
        next = 0;
    }
    int index, code, read;
    if (sscanf(told + next, "%d:%d%n", &index, &code, &read) != 2) return TIMEOUT;
    next += read;
    if (told[next] == ',') next++;
    memset(event, 0, sizeof *event);
    event->device = &devices[index];
    event->data = code;
    return SUCCESS;
}
