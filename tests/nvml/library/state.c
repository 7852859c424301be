/* What the file says now, the handles, and how every call begins: counted, and failing or hanging by the rules. */
#include "fake.h"

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

/* Two of them, so that a call that is under way still sees what it began with while the file is read anew. */
static struct state states[2];
struct state *latest = &states[0];
int initialised;
handle nonsense_handle = {99, -1, 0, 0};
_Thread_local int garbling;
handle gpu_handles[MOST_GPUS], mig_handles[MOST_GPUS][MOST_MIG], instance_handles[MOST_GPUS][MOST_INSTANCES];
handle compute_handles[MOST_GPUS][MOST_INSTANCES][MOST_COMPUTE];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stat seen;
static struct count counts[MOST_COUNTS];
static int counted;
static u64 delivered;

void make_handles(void) {
    for (int gpu = 0; gpu < MOST_GPUS; gpu++) {
        gpu_handles[gpu] = (handle){KIND_GPU, gpu, 0, 0};
        for (int mig = 0; mig < MOST_MIG; mig++)
            mig_handles[gpu][mig] = (handle){KIND_MIG, gpu, mig, 0};
        for (int instance = 0; instance < MOST_INSTANCES; instance++) {
            instance_handles[gpu][instance] = (handle){KIND_GPU_INSTANCE, gpu, instance, 0};
            for (int compute = 0; compute < MOST_COMPUTE; compute++)
                compute_handles[gpu][instance][compute] = (handle){KIND_COMPUTE_INSTANCE, gpu, instance, compute};
        }
    }
}

/* Reads the file if it is not the one that was read last; whoever calls holds the lock. */
static void refresh(void) {
    const char *path = getenv("FAKE_NVML_FILE");
    struct stat found;
    if (!path || stat(path, &found))
        return;
    if (found.st_ino == seen.st_ino && found.st_size == seen.st_size && found.st_mtim.tv_sec == seen.st_mtim.tv_sec
        && found.st_mtim.tv_nsec == seen.st_mtim.tv_nsec)
        return;
    FILE *file = fopen(path, "r");
    if (!file)
        return;
    struct state *fresh = &states[latest == &states[0]];
    read_flat_file(file, fresh);
    fclose(file);
    latest = fresh;
    seen = found;
    if (!now.events)
        delivered = 0;
}

static int count_call(const char *call, int gpu) {
    for (int entry = 0; entry < counted; entry++)
        if (counts[entry].gpu == gpu && !strcmp(counts[entry].call, call))
            return ++counts[entry].times;
    if (counted == MOST_COUNTS)
        return 0;
    copy_text(counts[counted].call, sizeof counts[counted].call, call);
    counts[counted].gpu = gpu;
    return counts[counted++].times = 1;
}

void write_counts(void) {
    const char *path = getenv("FAKE_NVML_COUNTS");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    for (int entry = 0; entry < counted; entry++)
        fprintf(file, "%s %d %d\n", counts[entry].call, counts[entry].gpu, counts[entry].times);
    fclose(file);
}

__attribute__((destructor)) static void at_exit(void) {
    write_counts();
}

void sleep_for(double seconds) {
    struct timespec wait = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&wait, NULL);
}

nvmlReturn_t enter(const char *call, int gpu) {
    double seconds = 0;
    int code = SUCCESS;
    garbling = 0;
    pthread_mutex_lock(&lock);
    refresh();
    count_call(call, gpu);
    for (int number = 0; number < now.rules; number++) {
        struct rule *rule = &now.rule[number];
        if ((strcmp(rule->call, call) && strcmp(rule->call, "*")) || (rule->gpu != -1 && rule->gpu != gpu))
            continue;
        if (++rule->hits < rule->from)
            continue;
        if (rule->garble) garbling = 1;
        else if (rule->seconds > 0) seconds = rule->seconds;
        else code = rule->code;
    }
    if (code == SUCCESS && !initialised && strncmp(call, "nvmlInit", 8))
        code = UNINITIALIZED;
    if (code == SUCCESS && gpu >= 0 && now.gpu[gpu].lost)
        code = GPU_IS_LOST;
    pthread_mutex_unlock(&lock);
    if (seconds > 0)
        sleep_for(seconds);
    return code;
}

int next_event(struct event_set *set, event_data *data) {
    int found = 0;
    pthread_mutex_lock(&lock);
    refresh();
    for (int number = 0; number < now.events && !found; number++) {
        const struct event *event = &now.event[number];
        if (event->serial <= set->delivered || (event->gpu >= 0 && !(set->types[event->gpu] & event->type)))
            continue;
        set->delivered = event->serial;
        if (event->serial > delivered)
            delivered = event->serial;
        handle *device = event->gpu < 0 ? NULL : &gpu_handles[event->gpu];
        *data = (event_data){device, event->type, event->data, event->instance, event->compute};
        found = 1;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

u64 last_event(void) {
    pthread_mutex_lock(&lock);
    u64 last = delivered;
    pthread_mutex_unlock(&lock);
    return last;
}

int find_uuid(const char *uuid, handle **device) {
    int found = -1;
    pthread_mutex_lock(&lock);
    refresh();
    for (int gpu = 0; gpu < now.gpus && found < 0; gpu++) {
        if (!strcmp(now.gpu[gpu].uuid, uuid)) {
            *device = &gpu_handles[gpu];
            found = gpu;
        }
        for (int mig = 0; mig < MOST_MIG && found < 0; mig++)
            if (now.gpu[gpu].migs[mig].known && !strcmp(now.gpu[gpu].migs[mig].uuid, uuid)) {
                *device = &mig_handles[gpu][mig];
                found = gpu;
            }
    }
    pthread_mutex_unlock(&lock);
    return found;
}
