/* MIG: modes, profiles, devices and instances. */
#include "fake.h"

struct mig *mig_of(const handle *device) {
    return &now.gpu[device->gpu].migs[device->number];
}

nvmlReturn_t nvmlDeviceGetMigMode(handle *device, u32 *current, u32 *pending) {
    BEGIN(device, A_GPU);
    if (gpu->mig_mode < 0) return NOT_SUPPORTED;
    *current = *pending = (u32)gpu->mig_mode;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(handle *device, u32 *count) {
    BEGIN(device, A_GPU);
    *count = 0;
    for (int number = 0; gpu->mig_mode == 1 && number < MOST_PROFILES; number++)
        if (gpu->profiles[number].known && gpu->profiles[number].slices > *count)
            *count = gpu->profiles[number].slices;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(handle *device, u32 index, handle **mig) {
    BEGIN(device, A_GPU);
    if (gpu->mig_mode != 1) return NOT_SUPPORTED;
    if (index >= MOST_MIG) return INVALID_ARGUMENT;
    if (!gpu->migs[index].known) return NOT_FOUND;
    *mig = &mig_handles[device->gpu][index];
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(handle *device, u32 *is_mig) {
    BEGIN(device, A_GPU | A_MIG);
    *is_mig = device->kind == KIND_MIG;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle *mig, handle **device) {
    BEGIN(mig, A_MIG);
    *device = &gpu_handles[mig->gpu];
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(handle *device, u32 *id) {
    BEGIN(device, A_MIG);
    *id = mig_of(device)->instance;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(handle *device, u32 *id) {
    BEGIN(device, A_MIG);
    *id = mig_of(device)->compute;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(handle *device, attributes *found) {
    BEGIN(device, A_MIG);
    const struct mig *mig = mig_of(device);
    const struct profile *profile = &gpu->profiles[mig->profile];
    *found = (attributes){.sm = profile->slices ? profile->sm * mig->compute_slices / profile->slices : 0,
                          .copy = mig->engines[0],
                          .decoder = mig->engines[1],
                          .encoder = mig->engines[2],
                          .jpeg = mig->engines[3],
                          .ofa = mig->engines[4],
                          .gpu_slices = profile->slices,
                          .compute_slices = mig->compute_slices,
                          .memory_mib = profile->mib};
    return SUCCESS;
}

/* The MIG device of a GPU or compute instance, or NULL; part < 0 means any compute instance. */
static struct mig *find_mig(struct gpu *gpu, u32 instance, int part) {
    for (int number = 0; number < MOST_MIG; number++) {
        struct mig *mig = &gpu->migs[number];
        if (mig->known && mig->instance == instance && (part < 0 || mig->compute == (u32)part))
            return mig;
    }
    return NULL;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(handle *device, u32 id, handle **instance) {
    BEGIN(device, A_GPU);
    if (id >= MOST_INSTANCES) return INVALID_ARGUMENT;
    if (!find_mig(gpu, id, -1)) return NOT_FOUND;
    *instance = &instance_handles[device->gpu][id];
    return SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetInfo(handle *instance, gpu_instance_info *info) {
    BEGIN(instance, 1 << KIND_GPU_INSTANCE);
    const struct mig *mig = find_mig(gpu, (u32)instance->number, -1);
    if (!mig) return NOT_FOUND;
    const struct profile *profile = &gpu->profiles[mig->profile];
    *info = (gpu_instance_info){&gpu_handles[instance->gpu], mig->instance, profile->id, {mig->start, profile->width}};
    return SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(handle *instance, u32 id, handle **compute) {
    BEGIN(instance, 1 << KIND_GPU_INSTANCE);
    if (id >= MOST_COMPUTE) return INVALID_ARGUMENT;
    if (!find_mig(gpu, (u32)instance->number, (int)id)) return NOT_FOUND;
    *compute = &compute_handles[instance->gpu][instance->number][id];
    return SUCCESS;
}

nvmlReturn_t nvmlComputeInstanceGetInfo_v2(handle *compute, compute_instance_info *info) {
    BEGIN(compute, 1 << KIND_COMPUTE_INSTANCE);
    const struct mig *mig = find_mig(gpu, (u32)compute->number, compute->part);
    if (!mig) return NOT_FOUND;
    *info = (compute_instance_info){&gpu_handles[compute->gpu], &instance_handles[compute->gpu][compute->number],
                                    mig->compute, mig->compute_slices - 1, {0, mig->compute_slices}};
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(handle *device, u32 number, profile_info *info) {
    BEGIN(device, A_GPU);
    if (number >= MOST_PROFILES) return INVALID_ARGUMENT;
    const struct profile *profile = &gpu->profiles[number];
    if (!profile->known) return NOT_SUPPORTED;
    *info = (profile_info){.id = profile->id, .slices = profile->slices, .count = profile->count, .sm = profile->sm,
                           .memory_mib = profile->mib};
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(handle *device, u32 number, profile_info_v2 *info) {
    BEGIN(device, A_GPU);
    if (info->version != 0x02000098) return ARGUMENT_VERSION_MISMATCH;
    if (number >= MOST_PROFILES) return INVALID_ARGUMENT;
    const struct profile *profile = &gpu->profiles[number];
    if (!profile->known) return NOT_SUPPORTED;
    *info = (profile_info_v2){.version = info->version, .id = profile->id, .slices = profile->slices,
                              .count = profile->count, .sm = profile->sm, .memory_mib = profile->mib};
    snprintf(info->name, sizeof info->name, "MIG %.90s", profile->name);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(handle *device, u32 id, placement *places, u32 *count) {
    BEGIN(device, A_GPU);
    if (gpu->mig_mode != 1) return NOT_SUPPORTED;
    for (int number = 0; number < MOST_PROFILES; number++) {
        const struct profile *profile = &gpu->profiles[number];
        if (!profile->known || profile->id != id)
            continue;
        *count = profile->starts;
        for (u32 place = 0; places && place < profile->starts; place++)
            places[place] = (placement){profile->start[place], profile->width};
        return SUCCESS;
    }
    return INVALID_ARGUMENT;
}
