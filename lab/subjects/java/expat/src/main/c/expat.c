/* Events of libexpat as calls of Java. As in Android, the names of elements become texts of Java only once. */
#include <expat.h>
#include <jni.h>
#include <string.h>

#define NAMES_MAX 64
#define NAME_MAX_BYTES 64

typedef struct {
    JNIEnv *env;
    jobject events;
    jmethodID start, text, end;
    XML_Parser parser;
    int count;
    char names[NAMES_MAX][NAME_MAX_BYTES];
    jstring texts[NAMES_MAX];
} Parse;

static int has_thrown(Parse *parse) {
    return (*parse->env)->ExceptionCheck(parse->env);
}

static void stop_if_thrown(Parse *parse) {
    if (has_thrown(parse)) {
        XML_StopParser(parse->parser, XML_FALSE);
    }
}

/* The text of a name; a long one, or one too many, is made anew each time. */
static jstring text_of(Parse *parse, const char *name, int *is_kept) {
    for (int at = 0; at < parse->count; at++) {
        if (strcmp(parse->names[at], name) == 0) {
            *is_kept = 1;
            return parse->texts[at];
        }
    }
    jstring text = (*parse->env)->NewStringUTF(parse->env, name);
    *is_kept = text != NULL && parse->count < NAMES_MAX && strlen(name) < NAME_MAX_BYTES;
    if (*is_kept) {
        strcpy(parse->names[parse->count], name);
        parse->texts[parse->count++] = text;
    }
    return text;
}

static void start_element(void *data, const XML_Char *name, const XML_Char **attributes) {
    (void)attributes;
    Parse *parse = data;
    if (has_thrown(parse)) { /* A parser that was stopped may call once more. */
        return;
    }
    int is_kept = 0;
    jstring text = text_of(parse, name, &is_kept);
    if (text != NULL) {
        (*parse->env)->CallVoidMethod(parse->env, parse->events, parse->start, text);
        if (!is_kept) {
            (*parse->env)->DeleteLocalRef(parse->env, text);
        }
    }
    stop_if_thrown(parse);
}

static void end_element(void *data, const XML_Char *name) {
    (void)name;
    Parse *parse = data;
    if (has_thrown(parse)) {
        return;
    }
    (*parse->env)->CallVoidMethod(parse->env, parse->events, parse->end);
    stop_if_thrown(parse);
}

static void characters(void *data, const XML_Char *letters, int count) {
    Parse *parse = data;
    if (has_thrown(parse)) {
        return;
    }
    JNIEnv *env = parse->env;
    jbyteArray bytes = (*env)->NewByteArray(env, count);
    if (bytes != NULL) {
        (*env)->SetByteArrayRegion(env, bytes, 0, count, (const jbyte *)letters);
        (*env)->CallVoidMethod(env, parse->events, parse->text, bytes);
        (*env)->DeleteLocalRef(env, bytes);
    }
    stop_if_thrown(parse);
}

/* A document type could define entities that grow without end. */
static void refuse(void *data, const XML_Char *name, const XML_Char *system, const XML_Char *publicly, int internal) {
    (void)name, (void)system, (void)publicly, (void)internal;
    XML_StopParser(((Parse *)data)->parser, XML_FALSE);
}

JNIEXPORT jstring JNICALL Java_stentor_lab_expat_Expat_parse(JNIEnv *env, jclass caller, jbyteArray document, jobject events) {
    (void)caller;
    jclass kind = (*env)->GetObjectClass(env, events);
    Parse parse = {.env = env, .events = events};
    parse.start = (*env)->GetMethodID(env, kind, "start", "(Ljava/lang/String;)V");
    parse.text = (*env)->GetMethodID(env, kind, "text", "([B)V");
    parse.end = (*env)->GetMethodID(env, kind, "end", "()V");
    if (parse.start == NULL || parse.text == NULL || parse.end == NULL || (*env)->EnsureLocalCapacity(env, NAMES_MAX + 8) != 0) {
        return NULL;
    }
    jbyte *bytes = (*env)->GetByteArrayElements(env, document, NULL);
    parse.parser = XML_ParserCreate("UTF-8");
    if (bytes == NULL || parse.parser == NULL) {
        if (bytes != NULL) {
            (*env)->ReleaseByteArrayElements(env, document, bytes, JNI_ABORT);
        }
        return (*env)->NewStringUTF(env, "no memory");
    }
    XML_SetUserData(parse.parser, &parse);
    XML_SetElementHandler(parse.parser, start_element, end_element);
    XML_SetCharacterDataHandler(parse.parser, characters);
    XML_SetStartDoctypeDeclHandler(parse.parser, refuse);
    int is_read = XML_Parse(parse.parser, (const char *)bytes, (*env)->GetArrayLength(env, document), XML_TRUE) == XML_STATUS_OK;
    const char *problem = is_read ? NULL : XML_ErrorString(XML_GetErrorCode(parse.parser));
    XML_ParserFree(parse.parser);
    (*env)->ReleaseByteArrayElements(env, document, bytes, JNI_ABORT);
    return problem == NULL || (*env)->ExceptionCheck(env) ? NULL : (*env)->NewStringUTF(env, problem);
}
