/*
 * A library with the binary interface of NVIDIA's libnvidia-ml.so.1, for the calls that gpustow makes, that tells
 * whatever a flat file says. The layouts and names are those of nvml.h as nvidia-ml-py 13 declares them.
 *
 * FAKE_NVML_FILE names the file; it is read again whenever it changes, so a test can lose a GPU, change the MIG layout,
 * make calls fail or hang, and send events while a process runs. FAKE_NVML_COUNTS names a file to which the number of
 * calls is written at nvmlShutdown and at exit, one line a call and GPU (-1: no GPU). tests/nvml/flatfile.py writes the
 * file and says what its lines mean.
 *
 * state.c reads the file, counts calls and applies the rules; device.c, mig.c, link.c, health.c and event.c are the
 * calls.
 */
#ifndef FAKE_H
#define FAKE_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
    TIMEOUT = 10, GPU_IS_LOST = 15, ARGUMENT_VERSION_MISMATCH = 25, UNKNOWN = 999,
};
enum { MOST_GPUS = 64, MOST_MIG = 64, MOST_PROFILES = 18, MOST_LINKS = 36, MOST_RULES = 64, MOST_EVENTS = 256 };
enum { MOST_INSTANCES = 15, MOST_COMPUTE = 8, MOST_COUNTS = 1024, MOST_STARTS = 16 };
enum { KIND_GPU = 1, KIND_MIG, KIND_GPU_INSTANCE, KIND_COMPUTE_INSTANCE };

typedef unsigned int u32;
typedef unsigned long long u64;
typedef int nvmlReturn_t;

typedef struct handle { int kind, gpu, number, part; } handle;

typedef struct { char busIdLegacy[16]; u32 domain, bus, device, pciDeviceId, pciSubSystemId; char busId[32]; } pci_info;
typedef struct { u64 total, free, used; } memory_info;
typedef struct { u32 version; u64 total, reserved, free, used; } memory_info_v2;
typedef struct { u32 sm, copy, decoder, encoder, jpeg, ofa, gpu_slices, compute_slices; u64 memory_mib; } attributes;
typedef struct { u32 start, size; } placement;
typedef struct { u32 id, p2p, slices, count, sm, copy, decoder, encoder, jpeg, ofa; u64 memory_mib; } profile_info;
typedef struct {
    u32 version, id, p2p, slices, count, sm, copy, decoder, encoder, jpeg, ofa; u64 memory_mib; char name[96];
} profile_info_v2;
typedef struct { handle *device; u32 id, profile_id; placement place; } gpu_instance_info;
typedef struct { handle *device, *gpu_instance; u32 id, profile_id; placement place; } compute_instance_info;
typedef struct { handle *device; u64 type, data; u32 gpu_instance, compute_instance; } event_data;
typedef struct { u32 version; uint8_t cluster[16]; u32 status, clique, state, health_mask; } fabric_info_v2;
typedef struct {
    u32 version; uint8_t cluster[16]; u32 status, clique, state, health_mask; uint8_t health_summary;
} fabric_info_v3;
typedef union { double real; u32 number; u64 wide; } field_content;
typedef struct { u32 id, scope; long long timestamp, latency; u32 type; nvmlReturn_t code; field_content value; } field;
typedef struct { u32 version; u64 aggregate[3], volatiles[3], buckets[5]; u32 threshold_exceeded; } sram_errors;

_Static_assert(sizeof(pci_info) == 68 && sizeof(memory_info) == 24 && sizeof(memory_info_v2) == 40, "nvml.h");
_Static_assert(sizeof(attributes) == 40 && sizeof(profile_info) == 48 && sizeof(profile_info_v2) == 0x98, "nvml.h");
_Static_assert(sizeof(gpu_instance_info) == 24 && sizeof(compute_instance_info) == 32, "nvml.h");
_Static_assert(sizeof(event_data) == 32 && sizeof(fabric_info_v2) == 0x24 && sizeof(fabric_info_v3) == 0x28, "nvml.h");
_Static_assert(sizeof(field) == 40 && sizeof(sram_errors) == 0x68, "nvml.h");

struct profile { int known; u32 id, slices, count, sm, width, starts; u64 mib; u32 start[MOST_STARTS]; char name[96]; };
struct mig { int known; u32 instance, compute, profile, compute_slices, start, engines[5]; u64 memory; char uuid[96]; };
struct link { int known; u32 active, remote_type; char bus[32]; };
struct gpu {
    int lost, mig_mode, has_memory, has_capability, has_fabric, has_recovery, has_remap, has_retired, has_sram;
    char uuid[96], name[96], bus[32];
    u32 pci_device, minor, major_cc, minor_cc;
    u32 recovery, remap[4], retired_pending, sram_exceeded;
    u64 memory, event_types;
    u32 fabric_state, fabric_status, clique;
    uint8_t cluster[16];
    struct profile profiles[MOST_PROFILES];
    struct mig migs[MOST_MIG];
    struct link links[MOST_LINKS];
    int level[MOST_GPUS];
};
struct rule { char call[80]; int gpu, code, from, hits, garble; double seconds; };
struct event { u64 serial, type, data; int gpu; u32 instance, compute; };
struct count { char call[80]; int gpu, times; };
struct event_set { u64 delivered, types[MOST_GPUS]; };

/* What the file says; zero where it is silent. A call takes its GPU from it once, at its beginning. */
extern struct state {
    int gpus, rules, events;
    char driver[80];
    u32 cuda;
    struct gpu gpu[MOST_GPUS];
    struct rule rule[MOST_RULES];
    struct event event[MOST_EVENTS];
} *latest;
#define now (*latest)

extern int initialised;
extern handle gpu_handles[MOST_GPUS], mig_handles[MOST_GPUS][MOST_MIG], instance_handles[MOST_GPUS][MOST_INSTANCES];
extern handle compute_handles[MOST_GPUS][MOST_INSTANCES][MOST_COMPUTE];

/* Nothing that the library knows; whether the call of this thread is to answer with such nonsense, as a success. */
extern handle nonsense_handle;
extern _Thread_local int garbling;

void make_handles(void);
void copy_text(char *into, size_t size, const char *text);
void sleep_for(double seconds);
void write_counts(void);

void fill_pci(pci_info *info, const char *bus, u32 device_id);
struct mig *mig_of(const handle *device);

/* Reads a flat file; what it does not say is zero in `into`. */
void read_flat_file(FILE *file, struct state *into);

/* Copies the next event that the set waits for; an event of GPU -1 has no device and reaches every set. */
int next_event(struct event_set *set, event_data *data);

/* The last event that reached anybody; a set is told what came after its creation. */
u64 last_event(void);

/* The index of the GPU with this UUID or with this MIG device's, else -1; *device is its handle or that device's. */
int find_uuid(const char *uuid, handle **device);

/* Counts the call, applies the rules for it, and says how it ends; SUCCESS means that it may go on. */
nvmlReturn_t enter(const char *call, int gpu);

static inline int owner(const handle *device) {
    return device ? device->gpu : -1;
}

#define BEGIN(device, kinds) \
    nvmlReturn_t began = enter(__func__, owner(device)); \
    if (began != SUCCESS) return began; \
    if (!(device) || !((kinds) & 1 << (device)->kind)) return INVALID_ARGUMENT; \
    struct gpu *gpu = &now.gpu[(device)->gpu]; \
    (void)gpu

#define A_GPU (1 << KIND_GPU)
#define A_MIG (1 << KIND_MIG)

#endif
