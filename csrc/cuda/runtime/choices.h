/* Algorithms and plans that a library chose for calls that programs repeat: asking again
 * takes longer than a small call. */
#ifndef DT_CUDA_RUNTIME_CHOICES_H
#define DT_CUDA_RUNTIME_CHOICES_H

#include <map>

namespace {

template <class Key, class Choice>
class Choices {
  public:
    /* The choice of a key; NULL if there is none. */
    Choice *find(const Key &key)
    {
        auto known = made().find(key);
        return known == made().end() ? nullptr : &known->second;
    }

    /* When there are too many, each is dropped. */
    template <class Drop>
    Choice *keep(const Key &key, const Choice &choice, Drop drop)
    {
        if (made().size() >= MOST) {
            for (auto &each : made())
                drop(each.second);
            made().clear();
        }
        return &made().emplace(key, choice).first->second;
    }

    Choice *keep(const Key &key, const Choice &choice)
    {
        return keep(key, choice, [](Choice &) {});
    }

    void forget(const Key &key) { made().erase(key); }
    void forget_all() { made().clear(); }

  private:
    enum { MOST = 1024 };

    /* Not freed at exit, when another thread may still compute. */
    std::map<Key, Choice> &made()
    {
        if (!choices)
            choices = new std::map<Key, Choice>;
        return *choices;
    }

    std::map<Key, Choice> *choices = nullptr;
};

} /* namespace */

#endif
