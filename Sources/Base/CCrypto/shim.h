// The parts of libcrypto that read signed messages (CMS) and seal bytes (EVP), as one module, with
// functions for the macros that Swift cannot import. Nothing here makes a decision.
#ifndef PREFSFS_CCRYPTO_SHIM_H
#define PREFSFS_CCRYPTO_SHIM_H

#include <openssl/bio.h>
#include <openssl/cms.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// BIO_get_mem_data, a macro.
static inline long prefsfs_bio_bytes(BIO *bio, char **bytes) {
  return BIO_get_mem_data(bio, bytes);
}

// sk_X509_num and sk_X509_value, and sk_CMS_SignerInfo_num and _value: macros.
static inline int prefsfs_certificate_count(const STACK_OF(X509) *stack) {
  return sk_X509_num(stack);
}

static inline X509 *prefsfs_certificate(const STACK_OF(X509) *stack, int index) {
  return sk_X509_value(stack, index);
}

static inline void prefsfs_free_certificates(STACK_OF(X509) *stack) { sk_X509_free(stack); }

// A list that owns its certificates: sk_X509_new_null, sk_X509_push and sk_X509_pop_free, macros.
static inline STACK_OF(X509) *prefsfs_new_certificates(void) { return sk_X509_new_null(); }

static inline void prefsfs_add_certificate(STACK_OF(X509) *list, X509 *certificate) {
  if (sk_X509_push(list, certificate) == 0) X509_free(certificate);
}

static inline void prefsfs_end_certificates(STACK_OF(X509) *list) {
  sk_X509_pop_free(list, X509_free);
}

static inline int prefsfs_signer_count(STACK_OF(CMS_SignerInfo) *stack) {
  return sk_CMS_SignerInfo_num(stack);
}

static inline CMS_SignerInfo *prefsfs_signer(STACK_OF(CMS_SignerInfo) *stack, int index) {
  return sk_CMS_SignerInfo_value(stack, index);
}

// CMS_get0_SignerInfos and CMS_signed_get0_data_by_OBJ return types that are spelled by macros.
static inline STACK_OF(CMS_SignerInfo) *prefsfs_signers(CMS_ContentInfo *message) {
  return CMS_get0_SignerInfos(message);
}

static inline STACK_OF(X509) *prefsfs_signer_certificates(CMS_ContentInfo *message) {
  return CMS_get0_signers(message);
}

// The number (NID_...) of the digest that a signature was made with.
static inline int prefsfs_digest_of(CMS_SignerInfo *signer) {
  X509_ALGOR *digest = NULL;
  CMS_SignerInfo_get0_algs(signer, NULL, NULL, &digest, NULL);
  const ASN1_OBJECT *object = NULL;
  if (digest != NULL) X509_ALGOR_get0(&object, NULL, NULL, digest);
  return object == NULL ? NID_undef : OBJ_obj2nid(object);
}

// The value of the signed attribute signingTime; NULL if there is none.
static inline ASN1_TIME *prefsfs_signing_time(CMS_SignerInfo *signer) {
  int index = CMS_signed_get_attr_by_NID(signer, NID_pkcs9_signingTime, -1);
  X509_ATTRIBUTE *attribute = index < 0 ? NULL : CMS_signed_get_attr(signer, index);
  ASN1_TYPE *value = attribute == NULL ? NULL : X509_ATTRIBUTE_get0_type(attribute, 0);
  if (value == NULL) return NULL;
  if (value->type != V_ASN1_UTCTIME && value->type != V_ASN1_GENERALIZEDTIME) return NULL;
  return (ASN1_TIME *)value->value.asn1_string;
}

#endif
