/* How GPUs are linked. */
#include "fake.h"

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(handle *device, handle *other, u32 *level) {
    BEGIN(device, A_GPU);
    if (!other || other->kind != KIND_GPU) return INVALID_ARGUMENT;
    if (now.gpu[other->gpu].lost) return GPU_IS_LOST;
    if (gpu->level[other->gpu] < 0) return NOT_SUPPORTED;
    *level = (u32)gpu->level[other->gpu];
    return SUCCESS;
}

static nvmlReturn_t find_link(const struct gpu *gpu, u32 number, const struct link **link) {
    if (!gpu->links[0].known) return NOT_SUPPORTED;
    if (number >= MOST_LINKS || !gpu->links[number].known) return INVALID_ARGUMENT;
    *link = &gpu->links[number];
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(handle *device, u32 number, u32 *active) {
    BEGIN(device, A_GPU);
    const struct link *link;
    nvmlReturn_t found = find_link(gpu, number, &link);
    if (found == SUCCESS) *active = link->active;
    return found;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(handle *device, u32 number, u32 *type) {
    BEGIN(device, A_GPU);
    const struct link *link;
    nvmlReturn_t found = find_link(gpu, number, &link);
    if (found == SUCCESS) *type = link->remote_type;
    return found;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(handle *device, u32 number, pci_info *info) {
    BEGIN(device, A_GPU);
    const struct link *link;
    nvmlReturn_t found = find_link(gpu, number, &link);
    if (found == SUCCESS) fill_pci(info, link->bus, 0);
    return found;
}
