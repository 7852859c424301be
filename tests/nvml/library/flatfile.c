/* Reads the flat file, line by line; lines that make no sense are skipped. */
#include "fake.h"

/* What the file is read into. */
static struct state *fresh;

void copy_text(char *into, size_t size, const char *text) {
    snprintf(into, size, "%s", text ? text : "");
}

static void read_profile(struct gpu *gpu, char *rest) {
    u32 number, id, slices, count, sm, width;
    u64 mib;
    char starts[160], name[96];
    if (sscanf(rest, "%u %u %u %u %u %llu %u %159s %95s", &number, &id, &slices, &count, &sm, &mib, &width, starts,
               name) != 9
        || number >= MOST_PROFILES)
        return;
    struct profile *profile = &gpu->profiles[number];
    *profile = (struct profile){
        .known = 1, .id = id, .slices = slices, .count = count, .sm = sm, .width = width, .mib = mib};
    copy_text(profile->name, sizeof profile->name, name);
    char *save;
    for (char *word = strtok_r(starts, ",", &save); word; word = strtok_r(NULL, ",", &save))
        if (profile->starts < MOST_STARTS)
            profile->start[profile->starts++] = (u32)atoi(word);
}

static void read_mig(struct gpu *gpu, char *rest) {
    u32 number;
    struct mig mig = {.known = 1};
    if (sscanf(rest, "%u %95s %u %u %u %u %u %llu", &number, mig.uuid, &mig.instance, &mig.compute, &mig.profile,
               &mig.compute_slices, &mig.start, &mig.memory) == 8
        && number < MOST_MIG && mig.instance < MOST_INSTANCES && mig.compute < MOST_COMPUTE
        && mig.profile < MOST_PROFILES)
        gpu->migs[number] = mig;
}

static void read_engines(struct gpu *gpu, char *rest) {
    u32 number, engines[5];
    if (sscanf(rest, "%u %u %u %u %u %u", &number, &engines[0], &engines[1], &engines[2], &engines[3], &engines[4]) == 6
        && number < MOST_MIG)
        memcpy(gpu->migs[number].engines, engines, sizeof engines);
}

static void read_link(struct gpu *gpu, char *rest) {
    u32 number;
    struct link link = {.known = 1};
    if (sscanf(rest, "%u %u %u %31s", &number, &link.active, &link.remote_type, link.bus) == 4 && number < MOST_LINKS)
        gpu->links[number] = link;
}

static void read_remap(struct gpu *gpu, char *rest) {
    gpu->has_remap =
        sscanf(rest, "%u %u %u %u", &gpu->remap[0], &gpu->remap[1], &gpu->remap[2], &gpu->remap[3]) == 4;
}

static void read_fabric(struct gpu *gpu, char *rest) {
    char cluster[33];
    if (sscanf(rest, "%u %u %u %32s", &gpu->fabric_state, &gpu->fabric_status, &gpu->clique, cluster) != 4)
        return;
    gpu->has_fabric = 1;
    for (int byte = 0; byte < 16; byte++) {
        unsigned value = 0;
        sscanf(cluster + 2 * byte, "%2x", &value);
        gpu->cluster[byte] = (uint8_t)value;
    }
}

static void read_gpu_line(char *text) {
    int index, used;
    char key[32];
    if (sscanf(text, "%d %31s %n", &index, key, &used) < 2 || index < 0 || index >= MOST_GPUS)
        return;
    struct gpu *gpu = &fresh->gpu[index];
    char *rest = text + used;
    if (index >= fresh->gpus)
        fresh->gpus = index + 1;
    if (!strcmp(key, "uuid")) copy_text(gpu->uuid, sizeof gpu->uuid, rest);
    else if (!strcmp(key, "name")) copy_text(gpu->name, sizeof gpu->name, rest);
    else if (!strcmp(key, "bus")) copy_text(gpu->bus, sizeof gpu->bus, rest);
    else if (!strcmp(key, "pci")) sscanf(rest, "%x", &gpu->pci_device);
    else if (!strcmp(key, "minor")) sscanf(rest, "%u", &gpu->minor);
    else if (!strcmp(key, "memory")) gpu->has_memory = sscanf(rest, "%llu", &gpu->memory) == 1;
    else if (!strcmp(key, "capability"))
        gpu->has_capability = sscanf(rest, "%u %u", &gpu->major_cc, &gpu->minor_cc) == 2;
    else if (!strcmp(key, "mig")) sscanf(rest, "%d", &gpu->mig_mode);
    else if (!strcmp(key, "lost")) sscanf(rest, "%d", &gpu->lost);
    else if (!strcmp(key, "events")) sscanf(rest, "%llx", &gpu->event_types);
    else if (!strcmp(key, "recovery")) gpu->has_recovery = sscanf(rest, "%u", &gpu->recovery) == 1;
    else if (!strcmp(key, "remap")) read_remap(gpu, rest);
    else if (!strcmp(key, "retired")) gpu->has_retired = sscanf(rest, "%u", &gpu->retired_pending) == 1;
    else if (!strcmp(key, "sram")) gpu->has_sram = sscanf(rest, "%u", &gpu->sram_exceeded) == 1;
    else if (!strcmp(key, "fabric")) read_fabric(gpu, rest);
    else if (!strcmp(key, "profile")) read_profile(gpu, rest);
    else if (!strcmp(key, "migdevice")) read_mig(gpu, rest);
    else if (!strcmp(key, "engines")) read_engines(gpu, rest);
    else if (!strcmp(key, "link")) read_link(gpu, rest);
    else if (!strcmp(key, "level")) {
        int other, level;
        if (sscanf(rest, "%d %d", &other, &level) == 2 && other >= 0 && other < MOST_GPUS)
            gpu->level[other] = level;
    }
}

static void read_line(char *line) {
    int used = 0;
    char kind[16];
    if (sscanf(line, "%15s %n", kind, &used) < 1)
        return;
    char *rest = line + used;
    struct rule rule = {0};
    struct event event = {0};
    if (!strcmp(kind, "driver")) copy_text(fresh->driver, sizeof fresh->driver, rest);
    else if (!strcmp(kind, "cuda")) sscanf(rest, "%u", &fresh->cuda);
    else if (!strcmp(kind, "gpu")) read_gpu_line(rest);
    else if (!strcmp(kind, "fail") && fresh->rules < MOST_RULES) {
        if (sscanf(rest, "%79s %d %d %d", rule.call, &rule.gpu, &rule.from, &rule.code) == 4)
            fresh->rule[fresh->rules++] = rule;
    } else if (!strcmp(kind, "hang") && fresh->rules < MOST_RULES) {
        if (sscanf(rest, "%79s %d %d %lf", rule.call, &rule.gpu, &rule.from, &rule.seconds) == 4)
            fresh->rule[fresh->rules++] = rule;
    } else if (!strcmp(kind, "garble") && fresh->rules < MOST_RULES) {
        rule.garble = 1;
        if (sscanf(rest, "%79s %d %d", rule.call, &rule.gpu, &rule.from) == 3)
            fresh->rule[fresh->rules++] = rule;
    } else if (!strcmp(kind, "event") && fresh->events < MOST_EVENTS) {
        if (sscanf(rest, "%llu %d %llx %llu %u %u", &event.serial, &event.gpu, &event.type, &event.data,
                   &event.instance, &event.compute) == 6)
            fresh->event[fresh->events++] = event;
    }
}

void read_flat_file(FILE *file, struct state *into) {
    char line[512];
    fresh = into;
    memset(into, 0, sizeof *into);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        read_line(line);
    }
}
