/* Events: sets, registration, waiting. */
#include "fake.h"

nvmlReturn_t nvmlEventSetCreate(struct event_set **set) {
    nvmlReturn_t began = enter(__func__, -1);
    if (began != SUCCESS) return began;
    *set = calloc(1, sizeof **set);
    return *set ? SUCCESS : UNKNOWN;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(handle *device, u64 *types) {
    BEGIN(device, A_GPU | A_MIG);
    if (device->kind == KIND_MIG) return NOT_SUPPORTED;
    *types = gpu->event_types;
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(handle *device, u64 types, struct event_set *set) {
    BEGIN(device, A_GPU | A_MIG);
    if (!set) return INVALID_ARGUMENT;
    if (device->kind == KIND_MIG || types & ~gpu->event_types) return NOT_SUPPORTED;
    set->types[device->gpu] |= types;
    return SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(struct event_set *set, event_data *data, u32 milliseconds) {
    nvmlReturn_t began = enter(__func__, -1);
    if (began != SUCCESS) return began;
    if (!set) return INVALID_ARGUMENT;
    for (u32 waited = 0;; waited += 2) {
        if (next_event(set, data)) return SUCCESS;
        if (waited >= milliseconds) return TIMEOUT;
        sleep_for(0.002);
    }
}

nvmlReturn_t nvmlEventSetFree(struct event_set *set) {
    nvmlReturn_t began = enter(__func__, -1);
    if (began == SUCCESS) free(set);
    return began;
}
