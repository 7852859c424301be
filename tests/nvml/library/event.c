/* Events: sets, registration, waiting. */
#include "fake.h"

/* The set that is no set. */
static struct event_set nonsense_set;

nvmlReturn_t nvmlEventSetCreate(struct event_set **set) {
    nvmlReturn_t began = enter(__func__, -1);
    if (began != SUCCESS) return began;
    if (garbling) {
        *set = &nonsense_set;
        return SUCCESS;
    }
    *set = calloc(1, sizeof **set);
    if (!*set) return UNKNOWN;
    (*set)->delivered = last_event();
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(handle *device, u64 *types) {
    BEGIN(device, A_GPU | A_MIG);
    if (device->kind == KIND_MIG) return NOT_SUPPORTED;
    *types = gpu->event_types;
    if (garbling) memset(types, 0xA5, sizeof *types);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(handle *device, u64 types, struct event_set *set) {
    BEGIN(device, A_GPU | A_MIG);
    if (!set || set == &nonsense_set) return INVALID_ARGUMENT;
    if (device->kind == KIND_MIG || types & ~gpu->event_types) return NOT_SUPPORTED;
    set->types[device->gpu] |= types;
    return SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(struct event_set *set, event_data *data, u32 milliseconds) {
    nvmlReturn_t began = enter(__func__, -1);
    if (began != SUCCESS) return began;
    if (!set || set == &nonsense_set) return INVALID_ARGUMENT;
    if (garbling) {
        memset(data, 0xA5, sizeof *data);
        data->device = &nonsense_handle;
        return SUCCESS;
    }
    for (u32 waited = 0;; waited += 2) {
        if (next_event(set, data)) return SUCCESS;
        if (waited >= milliseconds) return TIMEOUT;
        sleep_for(0.002);
    }
}

nvmlReturn_t nvmlEventSetFree(struct event_set *set) {
    nvmlReturn_t began = enter(__func__, -1);
    if (began != SUCCESS) return began;
    if (!set || set == &nonsense_set) return INVALID_ARGUMENT;
    free(set);
    return SUCCESS;
}
