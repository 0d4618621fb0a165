/*===- tcc/ranks.h - What several ranks do together -------------*- C -*-===//
 *
 * Part of tcc/runtime.h, which includes it.
 *
 *===----------------------------------------------------------------------===*/
#ifndef TCC_RANKS_H
#define TCC_RANKS_H

#include "tcc/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the user should know of the ranks, such as that they have no heartbeats;
 * empty if there is nothing. Valid as long as the session. */
TCC_API const char *tcc_session_ranks_note(const tcc_session *session);

/* What all ranks do together in one call. */
typedef enum tcc_collective_kind {
  TCC_ALL_REDUCE = 0,
  TCC_REDUCE_SCATTER,
  TCC_ALL_GATHER,
  TCC_BROADCAST,
  TCC_BARRIER
} tcc_collective_kind;

#define TCC_COLLECTIVE_OF 94 /* bytes of a text, with its end */
/* One collective of this rank. */
typedef struct tcc_collective {
  uint64_t number; /* from 1 on, the same at all ranks */
  int64_t step;    /* the update that it is part of; 0: before the first */
  tcc_collective_kind kind;
  tcc_dtype dtype;
  uint64_t count;             /* elements */
  int64_t begin_ns, end_ns;   /* since the ranks met; end_ns is -1 meanwhile */
  char of[TCC_COLLECTIVE_OF]; /* variables or the node that it is of, as far
                                 as they fit */
} tcc_collective;

/* Copies the last collectives of this rank, the oldest first, at most `count`
 * and TCC_COLLECTIVES_KEPT, and returns how many; 0 without other ranks. Any
 * thread may call it while another one is in a step, as to say where that
 * hangs, but not in tcc_session_create or tcc_session_release. */
TCC_API size_t tcc_session_collectives(const tcc_session *session,
                                       tcc_collective *calls, size_t count);
#define TCC_COLLECTIVES_KEPT 64

#ifdef __cplusplus
}
#endif

#endif /* TCC_RANKS_H */
