/* What a GPU says of its own health. Garbage is bytes of 0xA5. */
#include "fake.h"

enum { SRAM_ERRORS_VERSION = 0x01000068, UNSIGNED_INT = 1, GARBAGE = 0xA5 };
enum { REMAPPED_PENDING = 144, REMAPPED_FAILURE = 145, RECOVERY_ACTION = 230 };

static nvmlReturn_t fill_field(const struct gpu *gpu, field *one) {
    one->type = UNSIGNED_INT;
    switch (one->id) {
    case RECOVERY_ACTION: one->value.number = gpu->recovery; return gpu->has_recovery ? SUCCESS : NOT_SUPPORTED;
    case REMAPPED_PENDING: one->value.number = gpu->remap[2]; return gpu->has_remap ? SUCCESS : NOT_SUPPORTED;
    case REMAPPED_FAILURE: one->value.number = gpu->remap[3]; return gpu->has_remap ? SUCCESS : NOT_SUPPORTED;
    default: return INVALID_ARGUMENT;
    }
}

nvmlReturn_t nvmlDeviceGetFieldValues(handle *device, int count, field *fields) {
    BEGIN(device, A_GPU);
    for (int number = 0; number < count; number++) {
        fields[number].code = fill_field(gpu, &fields[number]);
        if (garbling) memset(&fields[number], GARBAGE, sizeof fields[number]);
    }
    return SUCCESS;
}

/* Not supported while there are MIG devices; the fields are. */
nvmlReturn_t nvmlDeviceGetRemappedRows(handle *device, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failure) {
    BEGIN(device, A_GPU);
    for (int number = 0; number < MOST_MIG; number++)
        if (gpu->migs[number].known) return NOT_SUPPORTED;
    if (!gpu->has_remap) return NOT_SUPPORTED;
    u32 *into[] = {corrected, uncorrected, pending, failure};
    for (int number = 0; number < 4; number++) {
        *into[number] = gpu->remap[number];
        if (garbling) memset(into[number], GARBAGE, sizeof *into[number]);
    }
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(handle *device, u32 *pending) {
    BEGIN(device, A_GPU);
    if (!gpu->has_retired) return NOT_SUPPORTED;
    *pending = gpu->retired_pending;
    if (garbling) memset(pending, GARBAGE, sizeof *pending);
    return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(handle *device, sram_errors *errors) {
    BEGIN(device, A_GPU);
    if (errors->version != SRAM_ERRORS_VERSION) return ARGUMENT_VERSION_MISMATCH;
    if (!gpu->has_sram) return NOT_SUPPORTED;
    errors->threshold_exceeded = gpu->sram_exceeded;
    if (garbling) memset(errors, GARBAGE, sizeof *errors);
    return SUCCESS;
}
