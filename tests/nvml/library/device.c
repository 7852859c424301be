/* The system and its GPUs. */
#include "fake.h"

static nvmlReturn_t give_text(char *into, u32 size, const char *text) {
    if (!into) return INVALID_ARGUMENT;
    if (strlen(text) >= size) return INSUFFICIENT_SIZE;
    strcpy(into, text);
    return SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(u32 flags) {
    (void)flags;
    make_handles();
    nvmlReturn_t began = enter(__func__, -1);
    if (began == SUCCESS) initialised++;
    return began;
}

nvmlReturn_t nvmlInit_v2(void) {
    make_handles();
    nvmlReturn_t began = enter(__func__, -1);
    if (began == SUCCESS) initialised++;
    return began;
}

nvmlReturn_t nvmlShutdown(void) {
    nvmlReturn_t began = enter(__func__, -1);
    if (began == SUCCESS) initialised--;
    write_counts();
    return began;
}

const char *nvmlErrorString(nvmlReturn_t code) {
    static _Thread_local char text[32];
    snprintf(text, sizeof text, "Fake error %d", code);
    return text;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, u32 size) {
    nvmlReturn_t began = enter(__func__, -1);
    return began == SUCCESS ? give_text(version, size, now.driver) : began;
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, u32 size) {
    nvmlReturn_t began = enter(__func__, -1);
    return began == SUCCESS ? give_text(version, size, now.driver) : began;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    nvmlReturn_t began = enter(__func__, -1);
    if (began == SUCCESS) *version = (int)now.cuda;
    return began;
}

nvmlReturn_t nvmlDeviceGetCount_v2(u32 *count) {
    nvmlReturn_t began = enter(__func__, -1);
    if (began == SUCCESS) *count = (u32)now.gpus;
    return began;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(u32 index, handle **device) {
    nvmlReturn_t began = enter(__func__, index < MOST_GPUS ? (int)index : -1);
    if (began != SUCCESS) return began;
    if (index >= (u32)now.gpus) return INVALID_ARGUMENT;
    *device = garbling ? &nonsense_handle : &gpu_handles[index];
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, handle **device) {
    handle *found = NULL;
    int gpu = find_uuid(uuid, &found);
    nvmlReturn_t began = enter(__func__, gpu);
    if (began != SUCCESS) return began;
    if (gpu < 0) return NOT_FOUND;
    *device = garbling ? &nonsense_handle : found;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(handle *device, char *name, u32 size) {
    BEGIN(device, A_GPU | A_MIG);
    return give_text(name, size, gpu->name);
}

nvmlReturn_t nvmlDeviceGetUUID(handle *device, char *uuid, u32 size) {
    BEGIN(device, A_GPU | A_MIG);
    if (garbling) {
        memset(uuid, 0xA5, size);
        return SUCCESS;
    }
    return give_text(uuid, size, device->kind == KIND_MIG ? mig_of(device)->uuid : gpu->uuid);
}

nvmlReturn_t nvmlDeviceGetIndex(handle *device, u32 *index) {
    BEGIN(device, A_GPU);
    *index = (u32)device->gpu;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(handle *device, u32 *minor) {
    BEGIN(device, A_GPU);
    *minor = gpu->minor;
    return SUCCESS;
}

void fill_pci(pci_info *info, const char *bus, u32 device_id) {
    memset(info, 0, sizeof *info);
    copy_text(info->busId, sizeof info->busId, bus);
    sscanf(bus, "%x:%x:%x", &info->domain, &info->bus, &info->device);
    snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%04X:%02X:%02X.0", info->domain & 0xffff, info->bus & 0xff,
             info->device & 0xff);
    info->pciDeviceId = device_id;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(handle *device, pci_info *info) {
    BEGIN(device, A_GPU);
    fill_pci(info, gpu->bus, gpu->pci_device);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(handle *device, memory_info *info) {
    BEGIN(device, A_GPU | A_MIG);
    if (device->kind == KIND_GPU && !gpu->has_memory) return NOT_SUPPORTED;
    u64 total = device->kind == KIND_MIG ? mig_of(device)->memory : gpu->memory;
    *info = (memory_info){total, total, 0};
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(handle *device, memory_info_v2 *info) {
    BEGIN(device, A_GPU | A_MIG);
    if (info->version != (sizeof *info | 2u << 24)) return ARGUMENT_VERSION_MISMATCH;
    if (device->kind == KIND_GPU && !gpu->has_memory) return NOT_SUPPORTED;
    info->total = info->free = device->kind == KIND_MIG ? mig_of(device)->memory : gpu->memory;
    info->reserved = info->used = 0;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(handle *device, int *major, int *minor) {
    BEGIN(device, A_GPU);
    if (!gpu->has_capability) return NOT_SUPPORTED;
    *major = (int)gpu->major_cc;
    *minor = (int)gpu->minor_cc;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(handle *device, fabric_info_v3 *info) {
    BEGIN(device, A_GPU);
    if (info->version != 0x02000024 && info->version != 0x03000028) return ARGUMENT_VERSION_MISMATCH;
    if (!gpu->has_fabric) return NOT_SUPPORTED;
    memcpy(info->cluster, gpu->cluster, sizeof info->cluster);
    info->status = gpu->fabric_status;
    info->clique = gpu->clique;
    info->state = gpu->fabric_state;
    info->health_mask = 0;
    if (info->version == 0x03000028) info->health_summary = 1;
    return SUCCESS;
}
