//===- TokenSource.h - Windows of token files -------------------*- C++ -*-===//
//
// A sample of a language model is a window of T tokens of one file; windows lie
// one after the other, and what is left at the end of a file is in none. The
// model's input has the window's tokens; its target, named by the recipe, the
// same where the loss shifts it (`loss.shift`), else the tokens one later. With
// the transform `window T stride S` of either a window begins every S tokens.
//
// `tokens:` takes files of three forms, told apart by how they begin:
//   llm.c   256 int32 (20240520, 1, tokens, ...), then tokens as u16
//   llm.c   256 int32 (20240801, 7, tokens, ...), then tokens as u32
//   else    tokens as u16 from the first byte on, as nanoGPT has them
// `text:` takes files of any bytes, each of which is a token.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DATA_TOKENSOURCE_H
#define TCC_RUNTIME_DATA_TOKENSOURCE_H

#include "runtime/data/SampleFile.h"
#include "runtime/data/SampleSource.h"

namespace tcc::runtime {

/// Tokens of a file.
struct TokenFile {
  std::shared_ptr<const SampleFile> file;
  DType dtype = DType::u8;
  uint64_t offset = 0; ///< of the first one
  int64_t count = 0;
};

/// The files of a list that commas divide, of tokens or of text. Code::BadData
/// where a header does not fit its file.
Result<std::vector<TokenFile>> openTokens(const std::string &paths,
                                          const Files &files);
Result<std::vector<TokenFile>> openText(const std::string &paths,
                                        const Files &files);

/// Windows of files, one after the other. `tensors` are integers of [batch, T]
/// for an input and, if there is one, its target, and weights of samples, which
/// are 1 (else Code::Usage). Code::BadData where no file has a whole window.
Result<std::unique_ptr<SampleSource>>
makeTokenSource(std::vector<TokenFile> files,
                std::span<const BatchTensor> tensors);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_TOKENSOURCE_H
